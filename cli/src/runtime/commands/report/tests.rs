use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use jobc_job::directory::JobDirectories;
use jobc_job::record::Record;
use jobc_job::time::Time;
use serde_json::{Value, json};

use super::*;

/// Milliseconds after the job was submitted.
fn at(millis: u64) -> Time {
    Time::from_millis(1_795_267_913_250 + millis)
}

/// A failed job: a server, a worker that succeeded, and a worker that was killed at its limit in its second attempt.
fn record() -> Record {
    let task = |name: &str, state: &str, ended: u64, code: u8| {
        json!({
            "task": name, "state": state, "attempt": 1, "limits": {"cpu_millis": 2000, "memory_bytes": 1 << 30},
            "started": at(1000), "ready": at(1500), "ended": at(ended), "exit_code": code,
        })
    };
    let mut killed = task("worker-1", "failed", 60_000, 137);
    killed["attempt"] = json!(2);
    killed["started"] = json!(at(22_000));
    killed["reason"] = json!("out of memory: used 1 GiB of 1 GiB");
    killed["earlier"] = json!([{"attempt": 1, "started": at(1000), "ended": at(20_000), "exit_code": 1}]);
    let explanation = "failed: `worker` reached min_failed 1 (worker-1: out of memory: used 1 GiB of 1 GiB)";
    serde_json::from_value(json!({
        "version": 1, "id": "train.1", "description": "trains <script>alert(1)</script> & 訓練", "source": "/home/lena/job.yaml",
        "target": "local", "owner": 1000, "state": "failed", "submitted": at(0), "started": at(1000), "ended": at(61_000),
        "attempt": 1, "network": "job", "notes": ["`disk` is not enforced here"],
        "claim": {"cpu_millis": 6000, "memory_bytes": 3_u64 << 30, "gpus": 1, "disk_bytes": 0},
        "tasks": [task("ps-0", "stopped", 60_500, 143), task("worker-0", "succeeded", 50_000, 0), killed],
        "end": {"explanation": explanation, "exit_code": 1, "task": "worker-1"},
    }))
    .unwrap()
}

fn events() -> Vec<Value> {
    vec![
        json!({"time": at(0), "event": "submitted", "detail": {"tasks": 3}}),
        json!({"time": at(800), "event": "created", "task": "worker-1", "attempt": 1, "detail": {"pid": 7}}),
        json!({"time": at(1000), "event": "started", "task": "worker-1", "attempt": 1, "detail": {"pid": 7}}),
        json!({"time": at(20_000), "event": "ended", "task": "worker-1", "attempt": 1, "detail": {"exit_code": 1, "explanation": null}}),
        json!({"time": at(20_001), "event": "retried", "task": "worker-1", "attempt": 1, "detail": {"scope": "task", "attempt": 2, "backoff_ms": 2000, "why": "<b>exit 1</b>"}}),
        json!({"time": at(21_900), "event": "created", "task": "worker-1", "attempt": 2, "detail": {"pid": 8}}),
        json!({"time": at(60_000), "event": "ended", "task": "worker-1", "attempt": 2, "detail": {"exit_code": 137, "explanation": "out of memory: used 1 GiB of 1 GiB"}}),
        json!({"time": at(61_000), "event": "ended", "detail": {"exit_code": 1, "explanation": "failed"}}),
    ]
}

fn samples() -> Vec<Value> {
    let sample = |second: u64, task: &str, attempt: u32, memory: u64| {
        json!({
            "time": at(second * 1000), "task": task, "attempt": attempt, "cpu_usec": second * 1_500_000, "memory": memory,
            "memory_peak": memory, "memory_limit_hits": 0, "oom_kills": 0, "read_bytes": 0, "written_bytes": second * 4096,
            "pids": 2, "gpu": [{"gpu": "GPU-1", "memory": 2_u64 << 30, "utilization": 90}],
        })
    };
    let mut samples = vec![];
    for second in [1, 10, 19] {
        samples.push(sample(second, "worker-0", 1, 300 << 20));
        samples.push(sample(second, "worker-1", 1, (second * 20) << 20));
    }
    samples.extend([23, 40, 59].map(|second| sample(second, "worker-1", 2, (second * 17) << 20)));
    let mut last = sample(60, "worker-1", 2, 1 << 30);
    (last["last"], last["oom_kills"], last["memory_limit_hits"]) = (json!(true), json!(1), json!(12));
    samples.push(last);
    samples
}

/// The page of that job, made from its files.
fn made() -> String {
    let dir = tempfile::tempdir().unwrap();
    let places = JobDirectories { state: dir.path().join("state"), records: dir.path().join("records") };
    let directory = places.create("train").unwrap();
    let lines = |values: Vec<Value>| values.iter().map(|value| format!("{value}\n")).collect::<String>();
    std::fs::write(directory.events_file(), lines(events())).unwrap();
    std::fs::write(directory.samples_file(), lines(samples())).unwrap();
    let log = directory.logs(&"worker-1".parse().unwrap());
    std::fs::create_dir_all(&log).unwrap();
    let text = "2026-11-21T13:32:53.250123Z stdout F 2 \u{1b}[32mepoch 1\u{1b}[0m\r50%\r<script>alert('log')</script> 訓練\n\
                2026-11-21T13:32:53.250124Z stderr F 2 \u{202e}Killed\n\
                2026-11-21T13:32:53.250125Z jobc F 0 2 lines lost: no space left on device (ENOSPC)\n";
    std::fs::write(log.join("000001.log"), text).unwrap();
    let mut facts = ReportData::gather(&directory, record());
    facts.now = at(100_000);
    page::page(&facts)
}

/// The page without its variable parts: its style and the version.
fn without_style(page: &str) -> String {
    let (before, rest) = page.split_once("<style>").unwrap();
    let (_, after) = rest.split_once("</style>").unwrap();
    format!("{before}<style></style>{after}").replace(env!("CARGO_PKG_VERSION"), "VERSION")
}

#[test]
fn the_page_of_a_job_that_failed() {
    snapbox::assert_data_eq!(without_style(&made()), snapbox::file!["tests/train.html"].raw());
}

#[test]
fn nothing_that_tasks_print_becomes_a_part_of_the_page() {
    let page = made();
    assert!(!page.contains("<script") && !page.contains("<b>"));
    assert!(page.contains("&lt;script&gt;alert(&#39;log&#39;)&lt;/script&gt;"));
    assert!(!page.contains('\u{1b}'));
}

#[test]
fn the_page_loads_nothing() {
    let page = made();
    for word in ["http:", "https:", "//", "src=", "url(", "@import", "<link", "<iframe", " on"] {
        let found = page.match_indices(word).find(|(at, _)| page[..*at].rfind('<') > page[..*at].rfind('>'));
        assert_eq!(found, None, "in a tag: {word}");
    }
    let style = page.split("</style>").next().unwrap();
    assert!(!style.contains("url(") && !style.contains("@import"));
    assert!(page.contains("content=\"default-src 'none'; style-src 'unsafe-inline'\""));
}

#[test]
fn every_link_has_its_place() {
    let page = made();
    let all = |attribute: &str| -> Vec<&str> {
        page.split(attribute).skip(1).filter_map(|rest| rest.split('"').next()).collect()
    };
    let places = all(" id=\"");
    let distinct: BTreeSet<&str> = places.iter().copied().collect();
    assert_eq!(distinct.len(), places.len(), "no place has two");
    let links = all(" href=\"#");
    assert!(links.len() >= 6 && links.iter().all(|link| distinct.contains(link)), "{links:?}");
}

/// HTML Tidy reads the page; it does not know links within drawings, which SVG 2 has.
#[test]
fn another_program_reads_the_page() {
    let tidy = Command::new("tidy")
        .args(["-errors", "-quiet", "--drop-empty-elements", "no"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut tidy) = tidy else {
        assert!(std::env::var("JOBC_ORACLES").as_deref() != Ok("required"), "tidy is not installed");
        eprintln!("skipped: tidy is not installed");
        return;
    };
    std::io::Write::write_all(&mut tidy.stdin.take().unwrap(), made().as_bytes()).unwrap();
    let output = String::from_utf8(tidy.wait_with_output().unwrap().stderr).unwrap();
    let complaints: Vec<&str> =
        output.lines().filter(|line| !line.contains("<a> proprietary attribute \"href\"")).collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
