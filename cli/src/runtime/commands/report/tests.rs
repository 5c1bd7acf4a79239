use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use jobc_job::directory::JobDirectories;
use jobc_job::metric_history::{HistoryValue, MetricHistory};
use jobc_job::record::Record;
use jobc_place::time::Time;
use serde_json::{Value, json};

use super::*;
use crate::runtime::commands::searched::Searched;
use crate::runtime::local_time::Zone;

/// Milliseconds after the job was submitted.
fn at(millis: u64) -> Time {
    Time::from_millis(1_795_267_913_250 + millis)
}

/// A failed job: a server, a worker that succeeded, and a worker that was killed at its limit in its second attempt.
fn record() -> Record {
    let task = |name: &str, state: &str, ended: u64, code: u8| {
        json!({
            "task": name, "state": state, "attempt": 1, "limits": {"cpu_millis": 2000, "memory_bytes": 1 << 30},
            "started": at(1000), "ready": at(1500), "ended": at(ended), "exit_code": code, "unenforced": ["memory_bytes"],
        })
    };
    let mut killed = task("worker-1", "failed", 60_000, 137);
    killed["attempt"] = json!(2);
    killed["started"] = json!(at(22_000));
    killed["gpus"] = json!(["GPU-1"]);
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
        let begin = if attempt == 2 { 22 } else { 0 };
        json!({
            "time": at(second * 1000), "task": task, "attempt": attempt, "cpu_usec": (second - begin) * 1_500_000, "memory": memory,
            "memory_peak": memory, "memory_limit_hits": 0, "oom_kills": 0, "read_bytes": 0, "written_bytes": second * 4096,
            "pids": 2, "gpu": [{"gpu": "GPU-1", "memory": 2_u64 << 30, "utilization": 90}],
        })
    };
    let mut samples = vec![];
    for second in [1, 10, 19] {
        samples.push(sample(second, "worker-0", 1, 300 << 20));
        samples.push(sample(second, "worker-1", 1, (second * 20) << 20));
    }
    let mut ended = sample(50, "worker-0", 1, 0);
    (ended["last"], ended["gpu"]) = (json!(true), json!([]));
    samples.push(ended);
    samples.extend([23, 40, 59].map(|second| sample(second, "worker-1", 2, (second * 17) << 20)));
    let mut last = sample(60, "worker-1", 2, 1 << 30);
    (last["last"], last["oom_kills"], last["memory_limit_hits"]) = (json!(true), json!(1), json!(12));
    samples.push(last);
    samples
}

fn origin() -> Value {
    let digest = format!("sha256:{}", "0123456789abcdef".repeat(4));
    json!({
        "version": "0.1.0", "command": ["/usr/bin/jobc", "run", "--set", "name=<b>", "job.yaml"], "user": "lena",
        "working_directory": "/home/lena", "job_file": digest,
        "images": {"main": {"reference": "debian:12", "digest": digest}, "ps": {"reference": "host"}},
        "host": {
            "name": "node-3", "system": "Debian GNU/Linux 12 (bookworm)", "kernel": "Linux 6.12.8", "architecture": "x86_64",
            "processor": "Some CPU", "cpu_millis": 16000, "memory_bytes": 64_u64 << 30, "gpu_driver": "550.54.15",
            "gpus": [{"name": "GPU-1", "number": "0", "model": "NVIDIA H200", "memory_bytes": 140_u64 << 30}],
        },
    })
}

/// The page of a job with these files.
fn page_of(record: Record, events: Vec<Value>, samples: Vec<Value>, logs: &[(&str, String)]) -> String {
    page::page(&facts_of(record, events, samples, logs))
}

fn facts_of(record: Record, events: Vec<Value>, samples: Vec<Value>, logs: &[(&str, String)]) -> ReportData {
    let dir = tempfile::tempdir().unwrap();
    let places = JobDirectories { state: dir.path().join("state"), records: dir.path().join("records") };
    let directory = places.create("train").unwrap();
    let lines = |values: Vec<Value>| values.iter().map(|value| format!("{value}\n")).collect::<String>();
    std::fs::write(directory.events_file(), lines(events)).unwrap();
    std::fs::write(directory.samples_file(), lines(samples)).unwrap();
    std::fs::write(directory.origin_file(), origin().to_string()).unwrap();
    std::fs::write(directory.job_file(), "version: 1\nname: train # <b>\n").unwrap();
    for (task, text) in logs {
        let log = directory.logs(&task.parse().unwrap());
        std::fs::create_dir_all(&log).unwrap();
        std::fs::write(log.join("000001.log"), text).unwrap();
    }
    let detail = jobc_job::local_place::detail(&directory, record);
    let mut facts = ReportData::gather("train.1".to_owned(), &Searched { directory, detail, plan: None });
    facts.now = at(100_000);
    facts.zone = Zone::fixed(1);
    facts
}

/// The page of the job that failed.
fn made() -> String {
    let text = "2026-11-21T13:32:53.250123Z stdout F 2 \u{1b}[32mepoch 1\u{1b}[0m\r50%\r<script>alert('log')</script> 訓練\n\
                2026-11-21T13:32:53.250124Z stderr F 2 \u{202e}Killed\n\
                2026-11-21T13:32:53.250125Z jobc F 0 2 lines lost: no space left on device (ENOSPC)\n";
    page_of(record(), events(), samples(), &[("worker-1", text.to_owned())])
}

/// A job of many workers, of which one failed, with samples and logs.
fn many(count: u64) -> String {
    let tasks: Vec<Value> = (0..count)
        .map(|index| {
            let (state, code) = if index == count / 2 { ("failed", 1) } else { ("succeeded", 0) };
            json!({
                "task": format!("worker-{index}"), "state": state, "attempt": 1, "exit_code": code,
                "limits": {"memory_bytes": 1 << 30}, "started": at(1000 + index), "ended": at(30_000 + index * 2),
            })
        })
        .collect();
    let mut record = json!(record());
    record["tasks"] = json!(tasks);
    record["end"]["task"] = json!(format!("worker-{}", count / 2));
    record["ended"] = json!(at(31_000 + count * 2));
    // A file of samples has at most 16 MiB, which is eight for each of ten thousand tasks.
    let times = (60_000 / count).clamp(2, 10);
    let sample = |index: u64, time: u64| {
        json!({
            "time": at(1000 + index + time * 28_000 / times), "task": format!("worker-{index}"), "attempt": 1,
            "cpu_usec": time * (900_000 + index * 10), "memory": ((index % 300) + 10) << 20, "read_bytes": time * 4096,
            "written_bytes": time << 20, "pids": 3, "gpu": [{"gpu": format!("GPU-{}", index % 8), "memory": index << 20,
            "utilization": (index + time * 7) % 100}],
        })
    };
    let samples = (0..times).flat_map(|time| (0..count).map(move |index| sample(index, time))).collect();
    let event = |index: u64| json!({"time": at(1000 + index), "event": "started", "task": format!("worker-{index}"), "attempt": 1, "detail": {"pid": index}});
    let line = "2026-11-21T13:32:53.250123Z stdout F 1 a line of output that is neither short nor long\n";
    let names: Vec<String> = (0..count).map(|index| format!("worker-{index}")).collect();
    let logs: Vec<(&str, String)> = names.iter().map(|name| (name.as_str(), line.repeat(60))).collect();
    page_of(serde_json::from_value(record).unwrap(), (0..count).map(event).collect(), samples, &logs)
}

/// The page without its variable parts: its style and the version.
fn without_style(page: &str) -> String {
    let (before, rest) = page.split_once("<style>").unwrap();
    let (_, after) = rest.split_once("</style>").unwrap();
    format!("{before}<style></style>{after}").replace(env!("CARGO_PKG_VERSION"), "VERSION")
}

#[test]
fn page_of_a_failed_job_matches_the_snapshot() {
    snapbox::assert_data_eq!(without_style(&made()), snapbox::file!["tests/train.html"].raw());
}

/// A job of which a role has a matrix of two groups, and both report a loss.
fn groups() -> ReportData {
    let mut record = json!(record());
    for (task, role) in [(1, "train-m0"), (2, "train-m1")] {
        record["tasks"][task]["task"] = json!(format!("{role}-0"));
    }
    record["end"]["task"] = json!("train-m1-0");
    record["combinations"] = json!({
        "train-m0": {"role": "train", "values": {"lr": 0.1, "seed": 1}},
        "train-m1": {"role": "train", "values": {"lr": 0.1, "seed": 2}},
    });
    let samples = samples().into_iter().map(|mut sample| {
        let task = if sample["task"] == "worker-0" { "train-m0-0" } else { "train-m1-0" };
        sample["task"] = json!(task);
        sample
    });
    let mut facts = facts_of(serde_json::from_value(record).unwrap(), vec![], samples.collect(), &[]);
    let value = |step: u32, value: f64| HistoryValue {
        value,
        time: Some(at(u64::from(step) * 1000)),
        attempt: 1,
        counts: [Some(f64::from(step)), None, None, None],
    };
    let history = |task: &str, last: f64| MetricHistory {
        metric: 0,
        task: task.parse().unwrap(),
        values: vec![value(1, 2.0), value(2, 1.0), value(3, last)],
    };
    facts.metrics = vec!["loss".to_owned()];
    facts.histories = vec![history("train-m0-0", 0.5), history("train-m1-0", f64::NAN)];
    facts
}

#[test]
fn metrics_are_curves_of_groups_with_the_values_of_their_matrix() {
    let page = page::page(&groups());
    for text in [
        "<h2>Metrics</h2>",
        "<desc>loss by step of 2 tasks</desc>",
        "<i class=\"line1\"></i>lr=0.1, seed=2</span>",
        "<title>lr=0.1, seed=2: nan at step 3</title>",
        "<th scope=\"row\">lr=0.1, seed=1</th><td class=\"n\">3</td><td class=\"n\">2</td><td class=\"n\">0.5</td>",
        "<h3>train <small>2 tasks</small></h3>",
        "class=\"name\">train lr=0.1, seed=2</text>",
        "<summary>train-m1-0 <small>lr=0.1, seed=2; nothing</small></summary>",
    ] {
        assert!(page.contains(text), "{text}\n{page}");
    }
    assert_eq!(tidy(&page), None);
}

#[test]
fn times_are_local() {
    let page = made();
    let submitted = "<time datetime=\"2026-11-21T13:31:53.250Z\">2026-11-21 14:31:53 +01:00</time>";
    assert!(page.contains(&format!("<small>Submitted</small> <span>{submitted}</span>")), "{page}");
    assert!(page.contains("<time>14:32:53.250</time>") && page.contains("<span>1 min</span>"), "{page}");
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
fn every_link_has_a_target() {
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

#[test]
fn a_job_of_any_size_is_a_page_that_a_browser_opens() {
    let page = many(100);
    assert!(page.contains("lowest to highest of 100 tasks") && page.contains("Tasks by state"));
    assert!(!page.contains("more are listed"), "every task has a row");
    assert_eq!(tidy(&page), None);
    let all = if jobc_test_skip::in_full() { 10_000 } else { 2_000 };
    let page = many(all);
    assert!(page.len() < 3 << 20, "{} bytes", page.len());
    let listed = |shown: u64| page.contains(&format!("{} more are listed", all - shown));
    assert!(listed(200) && listed(1000));
    let task = format!("worker-{}", all / 2);
    for place in
        [format!("class=\"name\">{task}<"), format!("id=\"log-{task}\" open"), format!(">{task}</a></th>")]
    {
        assert!(page.contains(&place), "the task that failed has its place: {place}");
    }
    assert_eq!(tidy(&page), None);
}

#[test]
fn an_empty_job_has_a_page() {
    let mut record = json!(record());
    record["end"] = json!({"explanation": "could not start: the job needs 3 CPUs", "exit_code": 125});
    record["tasks"] = json!([{"task": "main-0", "state": "stopped", "attempt": 0}]);
    record["started"] = Value::Null;
    let page = page_of(serde_json::from_value(record.clone()).unwrap(), vec![], vec![], &[]);
    assert!(page.contains("stopped, not started") && page.contains("No samples"), "{page}");
    assert_eq!(tidy(&page), None);
    // While it is prepared.
    (record["end"], record["ended"], record["state"]) = (Value::Null, Value::Null, json!("preparing"));
    record["tasks"][0]["state"] = json!("waiting");
    let page = page_of(serde_json::from_value(record).unwrap(), vec![], vec![], &[]);
    assert!(page.contains("waiting, not started") && page.contains("while the job ran"), "{page}");
    assert_eq!(tidy(&page), None);
}

#[test]
fn limits_that_nothing_enforces_are_marked_everywhere() {
    let page = made();
    assert!(page.contains("<small>Limits not enforced</small> <span>memory</span>"));
    assert!(page.contains("1.0 GiB <span class=\"unenforced\">not enforced</span>"));
    assert!(page.contains("limit 1.0 GiB, not enforced") && page.contains("class=\"limit unenforced\""));
    assert!(!page.contains("limit 2, not enforced"), "that of CPUs is enforced");
}

/// WCAG 2.1, 1.4.3 and 1.4.11: text has a contrast of 4.5, and what is drawn one of 3.
#[test]
fn tasks_with_slices_by_mps_have_the_use_of_the_card() {
    let words = "Tasks with slices by MPS share the GPU's utilization";
    assert!(!made().contains(words));
    let mut samples = samples();
    for sample in &mut samples {
        sample["gpu"] =
            json!([{"gpu": "GPU-1", "utilization": 90, "mps": {"memory_limit": 8_u64 << 30, "slices": 2}}]);
    }
    let page = page_of(record(), events(), samples, &[]);
    assert!(page.contains(words) && page.contains("utilization of GPU 0, highest 90 %"));
    assert!(!page.contains("memory of GPU 0, highest"));
}

#[test]
fn colors_have_contrast_in_light_and_dark() {
    let style = include_str!("report.css");
    let (light, rest) = style.split_once("@media screen").unwrap();
    let dark = rest.split_once("} }").unwrap().0;
    for (theme, text) in [("light", light), ("dark", dark)] {
        let color = |name: &str| -> [f64; 3] {
            let hex = text.split_once(&format!("--{name}: #")).unwrap_or_else(|| panic!("{theme} {name}")).1;
            std::array::from_fn(|at| {
                f64::from(u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).unwrap()) / 255.0
            })
        };
        let luminance = |color: [f64; 3]| {
            let linear =
                color.map(|c| if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) });
            linear[0] * 0.2126 + linear[1] * 0.7152 + linear[2] * 0.0722
        };
        let check = |name: &str, on: &str, least: f64| {
            let (a, b) = (luminance(color(name)), luminance(color(on)));
            let ratio = (a.max(b) + 0.05) / (a.min(b) + 0.05);
            assert!(ratio >= least, "{theme}: {name} on {on} has {ratio:.2}");
        };
        for on in ["back", "panel"] {
            for name in ["text", "soft", "good", "bad", "runs"] {
                check(name, on, 4.5);
            }
            for name in ["still", "held", "mark", "limit", "c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"] {
                check(name, on, 3.0);
            }
        }
    }
}

/// The errors that HTML Tidy finds in a page. It does not support links within drawings, which SVG 2 has.
fn tidy(page: &str) -> Option<String> {
    let tidy = Command::new("tidy")
        .args(["-errors", "-quiet", "--drop-empty-elements", "no"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut tidy) = tidy else {
        assert!(std::env::var("JOBC_ORACLES").as_deref() != Ok("required"), "tidy is not installed");
        jobc_test_skip::skip("tidy");
        return None;
    };
    let mut stdin = tidy.stdin.take().unwrap();
    let text = page.to_owned();
    let writer = std::thread::spawn(move || std::io::Write::write_all(&mut stdin, text.as_bytes()));
    let output = String::from_utf8(tidy.wait_with_output().unwrap().stderr).unwrap();
    writer.join().unwrap().unwrap();
    let complaints: Vec<&str> =
        output.lines().filter(|line| !line.contains("<a> proprietary attribute \"href\"")).take(10).collect();
    (!complaints.is_empty()).then(|| complaints.join("\n"))
}

#[test]
fn html_tidy_accepts_the_page() {
    assert_eq!(tidy(&made()), None);
}
