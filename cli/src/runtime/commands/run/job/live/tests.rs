use serde_json::json;
use unicode_width::UnicodeWidthStr as _;

use super::*;

/// The lines of a job with `count` running tasks.
fn shown(count: u64, columns: usize, height: usize) -> Vec<String> {
    let tasks: Vec<_> = (0..count)
        .map(|index| json!({"task": format!("worker-{index}"), "state": "running", "attempt": 1}))
        .collect();
    let record: Record = serde_json::from_value(json!({
        "version": 1, "id": "train.1", "source": "/job.yaml", "target": "local", "owner": 0, "state": "running",
        "submitted": Time::from_millis(0), "started": Time::from_millis(0), "attempt": 1, "network": "host",
        "claim": {"cpu_millis": 0, "memory_bytes": 0, "gpus": 0, "disk_bytes": 0}, "tasks": tasks,
    }))
    .unwrap();
    let look = |millis: u64| {
        let samples = (0..count).map(|index| {
            serde_json::from_value(json!({
                "time": Time::from_millis(millis), "task": format!("worker-{index}"), "attempt": 1,
                "cpu_usec": millis * 500, "memory": (index + 1) << 20, "read_bytes": 0, "written_bytes": 0, "pids": 1,
            }))
            .unwrap()
        });
        vec![("train.1".to_owned(), measured(&record, samples.collect()))]
    };
    let mut rows = UsageRows::default();
    rows.update(look(1000));
    let rows = rows.update(look(2000));
    let last_line = |row: &Row| {
        (row.usage.task.index > 0).then(|| "学習 epoch 3: loss 0.25, a long line of a task".to_owned())
    };
    lines(
        &[("train.1".to_owned(), summary(&record))],
        &rows,
        &last_line,
        columns,
        height,
        Time::from_millis(65_000),
    )
}

#[test]
fn tasks_are_below_a_line_of_the_job() {
    assert_eq!(
        shown(2, 100, 30),
        [
            "train.1  running  65 s  2 running  CPU 100%  memory 3.0 MiB",
            "TASK      STATE    CPU  MEMORY   GPU  LAST LINE",
            "worker-0  running  50%  1.0 MiB  -",
            "worker-1  running  50%  2.0 MiB  -    学習 epoch 3: loss 0.25, a long line of a task",
        ]
    );
    assert_eq!(shown(0, 100, 30), ["train.1  running  65 s    CPU 0.0%  memory 0 B"]);
}

#[test]
fn most_of_the_terminal_is_for_output() {
    for (count, columns, height) in [(1, 40, 10), (100, 80, 24), (10_000, 200, 50), (5, 50, 12)] {
        let lines = shown(count, columns, height);
        assert!(lines.len() <= height / 3 + 3, "{lines:?}");
        assert!(lines.iter().all(|line| line.width() < columns), "{lines:?}");
    }
    assert_eq!(shown(100, 80, 24).last().unwrap(), "and 92 more tasks; `jobc top` shows all");
}
