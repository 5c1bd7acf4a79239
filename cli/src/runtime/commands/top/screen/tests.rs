use jobc_job::local_place::{measured, summary};
use jobc_job::record::Record;
use serde_json::json;
use unicode_width::UnicodeWidthStr as _;

use super::super::super::stats::UsageRows;
use super::*;

/// A view of a job of `count` workers, of which the third is the busiest.
fn view(count: u64) -> View {
    let tasks: Vec<_> = (0..count)
        .map(|index| json!({"task": format!("worker-{index}"), "state": "running", "attempt": 1, "limits": {"memory_bytes": 1 << 30}}))
        .collect();
    let record = json!({
        "version": 1, "id": "train.1", "source": "/job.yaml", "target": "local", "owner": 0, "state": "running",
        "submitted": Time::from_millis(0), "started": Time::from_millis(0), "attempt": 1, "network": "host",
        "claim": {"cpu_millis": 0, "memory_bytes": 0, "gpus": 0, "disk_bytes": 0}, "tasks": tasks,
    });
    let record: Record = serde_json::from_value(record).unwrap();
    let look = |millis: u64| {
        let samples = (0..count).map(|index| {
            let cpu = if index == 2 { millis * 900 } else { millis * 100 };
            serde_json::from_value(json!({
                "time": Time::from_millis(millis), "task": format!("worker-{index}"), "attempt": 1, "cpu_usec": cpu,
                "memory": (index + 1) << 20, "read_bytes": 0, "written_bytes": millis * 1024, "pids": 1,
            }))
            .unwrap()
        });
        vec![("train.1".to_owned(), measured(&record, samples.collect()))]
    };
    let mut rows = UsageRows::default();
    rows.update(look(1000));
    let mut view = View::default();
    view.set_sample(vec![("train.1".to_owned(), summary(&record))], rows.update(look(2000)));
    view
}

fn shown(view: &mut View, columns: usize, lines: usize) -> Vec<String> {
    let drawn = view.lines(columns, lines, Time::from_millis(65_000));
    assert_eq!(drawn.len(), lines);
    let plain = |line: &String| {
        ["\x1b[7m", "\x1b[2m", "\x1b[0m"].iter().fold(line.clone(), |text, code| text.replace(code, ""))
    };
    drawn.iter().map(|line| plain(line).trim_end().to_owned()).collect()
}

#[test]
fn a_job_fills_the_terminal() {
    assert_eq!(
        shown(&mut view(4), 100, 9),
        [
            "train.1  running  65 s  4 running  CPU 120%  memory 10.0 MiB",
            "",
            "JOB      TASK      STATE    CPU  MEMORY   LIMIT    READ   WRITTEN    PIDS  GPU",
            "train.1  worker-0  running  10%  1.0 MiB  1.0 GiB  0 B/s  0.9 MiB/s  1     -",
            "train.1  worker-1  running  10%  2.0 MiB  1.0 GiB  0 B/s  0.9 MiB/s  1     -",
            "train.1  worker-2  running  90%  3.0 MiB  1.0 GiB  0 B/s  0.9 MiB/s  1     -",
            "train.1  worker-3  running  10%  4.0 MiB  1.0 GiB  0 B/s  0.9 MiB/s  1     -",
            "",
            "? keys  q quit  / filter  sort: c CPU  m memory  i traffic  p plan",
        ],
    );
}

#[test]
fn many_tasks_are_scrolled_and_sorted() {
    let mut view = view(200);
    let first = |lines: &[String]| lines[3].split_whitespace().nth(1).unwrap().to_owned();
    assert_eq!(first(&shown(&mut view, 100, 24)), "worker-0");
    view.handle_key(Key::Down);
    assert_eq!(first(&shown(&mut view, 100, 24)), "worker-1");
    view.handle_key(Key::PageDown);
    let lines = shown(&mut view, 100, 24);
    assert_eq!(first(&lines), "worker-21");
    assert!(lines[23].starts_with("22-41 of 200  ? keys  q quit"), "{}", lines[23]);
    for _ in 0..30 {
        view.handle_key(Key::PageDown);
    }
    let lines = shown(&mut view, 100, 24);
    assert!(lines[22].contains("worker-199"), "the last row is the last task: {}", lines[22]);
    view.handle_key(Key::Letter('c'));
    assert_eq!(first(&shown(&mut view, 100, 24)), "worker-2");
    view.handle_key(Key::Letter('m'));
    assert_eq!(first(&shown(&mut view, 100, 24)), "worker-199");
    view.handle_key(Key::Letter('p'));
    assert_eq!(first(&shown(&mut view, 100, 24)), "worker-0");
}

#[test]
fn output_fits_a_small_terminal() {
    for (columns, lines) in [(95, 4), (95, 5), (120, 30)] {
        let drawn = shown(&mut view(50), columns, lines);
        assert!(drawn.iter().all(|line| line.width() <= columns), "{drawn:?}");
    }
}

#[test]
fn keys_are_distinguished() {
    assert_eq!(keys(b"q"), [Key::Letter('q')]);
    assert_eq!(keys(b"\x03"), [Key::Quit]);
    assert_eq!(keys(b"\x1b[Ajk\x1b[6~"), [Key::Up, Key::Letter('j'), Key::Letter('k'), Key::PageDown]);
    // A key without an effect, Home or F5, does not quit.
    assert_eq!(keys(b"\x1b[1;5Hc\x1b[15~"), [Key::Letter('c')]);
    assert_eq!(keys(b"\x1b"), [Key::Escape]);
    assert_eq!(keys(b"\xff\r\x7f"), [Key::Enter, Key::Backspace]);
}

#[test]
fn a_filter_is_typed() {
    let mut view = view(12);
    for key in keys(b"/er-1") {
        assert!(!view.handle_key(key));
    }
    let lines = shown(&mut view, 100, 12);
    assert_eq!(lines.last().unwrap(), "filter: er-1_  Enter keeps it  Esc clears it");
    assert_eq!(lines.iter().filter(|line| line.starts_with("train.1  worker-")).count(), 3);
    assert!(!view.handle_key(Key::Enter));
    let lines = shown(&mut view, 120, 12);
    assert!(lines.last().unwrap().contains("filter: er-1 (3 of 12)"), "{lines:?}");
    // A `q` in a filter is text, and so is a key of an order; the first Escape clears the filter.
    for key in keys(b"/qc") {
        assert!(!view.handle_key(key));
    }
    assert_eq!(view.filtered().len(), 0);
    assert!(!view.handle_key(Key::Escape));
    assert_eq!(view.filtered().len(), 12);
    assert!(view.handle_key(Key::Escape));
}

#[test]
fn a_question_mark_shows_the_keys_until_the_next_key() {
    // In a filter it is text.
    let mut typing = view(4);
    for key in keys(b"/?") {
        typing.handle_key(key);
    }
    assert_eq!((typing.filter.as_str(), typing.shows_keys), ("?", false));
    let mut view = view(4);
    assert!(!view.handle_key(Key::Letter('?')));
    assert_eq!(
        shown(&mut view, 100, 14),
        [
            "train.1  running  65 s  4 running  CPU 120%  memory 10.0 MiB",
            "",
            "q, Ctrl-C                     quit",
            "Up, Down, k, j                scroll by one row",
            "Page Up, Page Down, b, Space  scroll by one page",
            "/                             show only jobs, tasks and states with the text typed next; Enter keeps it",
            "Esc                           clear the filter; without one, quit",
            "c                             sort by CPU",
            "m                             sort by memory",
            "i                             sort by disk traffic",
            "p                             sort in the order of the plan",
            "?                             show these keys; any key closes them",
            "",
            "any key closes this list",
        ],
    );
    assert_eq!(shown(&mut view, 40, 5).last().unwrap(), "any key closes this list");
    // The key that closes the list has no other effect, except Ctrl-C, which quits.
    assert!(!view.handle_key(Key::Letter('q')));
    assert!(shown(&mut view, 100, 9)[3].contains("worker-0"));
    view.handle_key(Key::Letter('?'));
    assert!(view.handle_key(Key::Quit));
}
