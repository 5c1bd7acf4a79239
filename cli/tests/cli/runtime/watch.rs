//! The commands that show what jobs print, use and go through, on the files of a job that has ended.

use serde_json::{Value, json};

use crate::directory::{Directory, Run, binary};

/// A job of a server and two workers that has ended, with logs, events and no samples.
fn ended() -> Directory {
    let directory = Directory::new();
    let task = |name: &str, exit_code: u8| {
        json!({
            "task": name, "state": if exit_code == 0 { "succeeded" } else { "failed" }, "attempt": 1,
            "started": "2026-11-21T13:00:00.000Z", "ended": "2026-11-21T13:00:09.000Z", "exit_code": exit_code,
        })
    };
    let record = json!({
        "version": 1, "id": "watched.1", "source": "/job.yaml", "target": "local", "owner": 0, "state": "failed",
        "submitted": "2026-11-21T13:00:00.000Z", "started": "2026-11-21T13:00:00.000Z",
        "ended": "2026-11-21T13:00:10.000Z", "attempt": 1, "network": "host",
        "claim": {"cpu_millis": 0, "memory_bytes": 0, "gpus": 0, "disk_bytes": 0},
        "tasks": [task("ps-0", 0), task("worker-0", 0), task("worker-10", 1)],
        "end": {"explanation": "failed: `worker` reached min_failed 1", "exit_code": 1},
    });
    directory.write("state/jobc/jobs/watched.1/job.json", &record.to_string());
    let events = [
        json!({"time": "2026-11-21T13:00:00.000Z", "event": "submitted", "detail": {"tasks": 3}}),
        json!({"time": "2026-11-21T13:00:00.500Z", "event": "started", "task": "worker-10", "attempt": 1, "detail": {"pid": 7}}),
        json!({"time": "2026-11-21T13:00:09.000Z", "event": "ended", "task": "worker-10", "attempt": 1, "detail": {"exit_code": 1}}),
    ];
    let lines: String = events.iter().map(|event| format!("{event}\n")).collect();
    directory.write("state/jobc/jobs/watched.1/events.jsonl", &lines);
    let log = |task: &str, lines: &[(u32, &str)]| {
        let text: String = lines
            .iter()
            .map(|(second, rest)| format!("2026-11-21T13:00:{second:02}.000000Z {rest}\n"))
            .collect();
        directory.write(&format!("state/jobc/jobs/watched.1/logs/{task}/000001.log"), &text);
    };
    log("ps-0", &[(1, "stdout F 1 listening"), (8, "stderr F 1 bye")]);
    log("worker-0", &[(2, "stdout F 1 epoch 1"), (3, "stdout P 1 half "), (4, "stdout F 1 a line")]);
    log("worker-10", &[(2, "stdout F 1 epoch 1"), (5, "stderr F 1 Killed"), (6, "stdout F 2 訓練")]);
    directory
}

impl Directory {
    fn about_jobs(&self, arguments: &[&str]) -> Run {
        Run::of(self.command(binary()).args(arguments).env("XDG_STATE_HOME", self.path().join("state")))
    }

    fn line(&self, line: &str) -> Run {
        let mut bash = self.command("bash");
        bash.args(["-c", line]).env("JOBC", binary()).env("XDG_STATE_HOME", self.path().join("state"));
        Run::of(&mut bash)
    }
}

#[test]
fn logs_are_merged_with_task_prefixes() {
    let run = ended().about_jobs(&["logs", "watched"]).exits(0);
    assert_eq!(
        run.out,
        "ps-0      | listening\n\
         worker-0  | epoch 1\n\
         worker-10 | epoch 1\n\
         worker-0  | half a line\n\
         worker-10 | 訓練\n"
    );
    assert_eq!(run.err, "worker-10 | Killed\njobc: worker-10: attempt 2\nps-0      | bye\n");
}

#[test]
fn a_task_alone_is_shown_as_it_printed() {
    let directory = ended();
    let shown =
        |arguments: &[&str]| directory.about_jobs(&[&["logs", "watched.1"], arguments].concat()).exits(0).out;
    assert_eq!(shown(&["worker-0"]), "epoch 1\nhalf a line\n");
    assert_eq!(shown(&["ps"]), "listening\n");
    assert_eq!(shown(&["worker", "-n", "1", "--attempt", "1"]), "worker-0  | half a line\n");
    assert_eq!(shown(&["--since", "2026-11-21T13:00:06Z"]), "worker-10 | 訓練\n");
    assert_eq!(shown(&["--since", "1s"]), "");
    assert_eq!(shown(&["-f", "worker-0", "--tail", "1"]), "half a line\n");
    assert_eq!(shown(&["--timestamps", "worker-0", "-n", "1"]), "2026-11-21T13:00:03.000000Z half a line\n");
}

#[test]
fn missing_jobs_and_tasks_are_reported() {
    let directory = ended();
    directory.about_jobs(&["logs", "wached"]).exits(2).says("did you mean `watched`?");
    directory.about_jobs(&["logs", "watched", "worker-1"]).exits(2).says("has no task `worker-1`");
    directory.about_jobs(&["logs", "watched", "--since", "soon"]).exits(2).says("write a time such as `10m`");
    directory
        .about_jobs(&["events", "watched", "--format", "xml"])
        .exits(2)
        .says("possible values: text, json");
}

#[test]
fn json_output_has_one_object_per_line() {
    let directory = ended();
    let objects = |run: Run| -> Vec<Value> {
        run.exits(0).out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let lines = objects(directory.about_jobs(&["logs", "watched", "--format", "json"]));
    assert_eq!(lines.len(), 7);
    assert_eq!(
        lines[3],
        json!({
            "time": "2026-11-21T13:00:03.000000Z", "job": "watched.1", "task": "worker-0", "attempt": 1,
            "stream": "stdout", "text": "half a line", "ends": true,
        })
    );
    let events = objects(directory.about_jobs(&["events", "watched", "--format", "json"]));
    assert_eq!(events[2]["detail"]["exit_code"], 1);
    assert_eq!(objects(directory.about_jobs(&["stats", "watched", "--format", "json"])).len(), 0);
}

#[test]
fn events_prints_one_line_per_event() {
    let run = ended().about_jobs(&["events", "-f", "watched"]).exits(0);
    assert_eq!(
        run.out,
        "2026-11-21T13:00:00.000Z             submitted      tasks: 3\n\
         2026-11-21T13:00:00.500Z  worker-10  started        process 7\n\
         2026-11-21T13:00:09.000Z  worker-10  ended          exit 1\n"
    );
}

#[test]
fn nothing_is_used_by_a_job_that_has_ended() {
    let directory = ended();
    for command in ["stats", "top"] {
        let run = directory.about_jobs(&[command, "watched"]).exits(0);
        assert_eq!(run.out, "JOB  TASK  CPU  MEMORY  LIMIT  READ  WRITTEN  PIDS  GPU\n");
    }
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let directory = ended();
    let long: String = (0..20_000).map(|n| format!("2026-11-21T13:00:30.000000Z stdout F 1 {n}\n")).collect();
    directory.write("state/jobc/jobs/watched.1/logs/worker-0/000002.log", &long);
    for command in
        ["logs watched", "logs -f watched worker-0", "logs --format json watched", "report watched -o -"]
    {
        let run = directory
            .line(&format!("\"$JOBC\" {command} 2>/dev/null | head -1 >/dev/null; echo ${{PIPESTATUS[0]}}"));
        assert_eq!(run.out, "0\n", "{command}");
    }
    directory.line("\"$JOBC\" logs watched >/dev/full").exits(3).says("cannot write to standard output");
}

#[test]
fn colors_are_for_terminals_and_on_request() {
    let directory = ended();
    let plain = directory.about_jobs(&["logs", "watched"]);
    assert!(!plain.out.contains('\u{1b}'));
    let colored = directory.about_jobs(&["logs", "watched", "--color", "always"]).out;
    let of = |task: &str| colored.lines().find(|line| line.contains(task)).unwrap()[..5].to_owned();
    assert_eq!(of("ps-0"), "\u{1b}[36m");
    assert_eq!(of("worker-0"), "\u{1b}[33m");
    // The same color, regardless of which tasks are shown.
    let alone = directory.about_jobs(&["logs", "watched", "worker", "--color", "always"]).out;
    assert!(alone.starts_with("\u{1b}[33mworker-0  |"), "{alone}");
}

#[test]
fn a_page_is_written() {
    let directory = ended();
    let run = directory.about_jobs(&["report", "watched"]).exits(0);
    assert_eq!(run.out, "watched.1.html\n");
    let page = directory.read("watched.1.html");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("<code>worker</code> reached min_failed 1"));
    directory
        .about_jobs(&["report", "watched", "-o", "absent/page.html"])
        .exits(3)
        .says("cannot write `absent/page.html`");
}
