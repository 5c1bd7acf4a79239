//! The values that metrics had over time, from the logs and the JSON Lines files of a job.
//!
//! The record of a job has only the last value of a metric. All others are still in what the tasks printed and wrote.

mod detect;

use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use regex::bytes::Regex;

use crate::logs::{LineFilter, Reader};
use crate::user_metrics::{COUNT_KEYS, FileValue, last_number};
use jobc_place::logs::{Line, Stream};
use jobc_place::time::Time;
use jobc_sys::id::TaskId;

/// What lines count, besides time. The last is the number of the line, which only files have.
pub const COUNTS: [&str; 4] = ["step", "iteration", "epoch", "line"];

/// Maximum number of values that are kept of a task: of more, the lowest and the highest of each few.
const MAX_VALUES: usize = 20_000;

/// Maximum number of metrics of a task that are detected.
const MAX_DETECTED: usize = 24;

/// Maximum length of a line that does not end.
const MAX_LINE_BYTES: usize = 64 << 10;

/// How long after the end of a job its files may have changed: what is written later is of another run.
const WRITE_TOLERANCE: Duration = Duration::from_secs(2);

/// The values of a metric of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricHistory {
    /// The number of the metric among those asked for.
    pub metric: usize,
    /// The task.
    pub task: TaskId,
    /// The values, in the order in which they were written.
    pub values: Vec<HistoryValue>,
}

/// A value of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HistoryValue {
    /// The value; may be NaN or infinite.
    pub value: f64,
    /// When it was printed; unknown in a file.
    pub time: Option<Time>,
    /// The attempt of the task, from 1; 1 in a file.
    pub attempt: u32,
    /// What else its line counts.
    pub counts: [Option<f64>; COUNTS.len()],
}

/// The number of the first of [`COUNTS`] that all these values have, and that increases with each value of an attempt.
pub fn common_count(all: &[&[HistoryValue]]) -> Option<usize> {
    let increases = |count: usize, values: &[HistoryValue]| {
        values.iter().all(|value| value.counts[count].is_some())
            && values.windows(2).all(|pair| {
                pair[0].attempt != pair[1].attempt || pair[0].counts[count] < pair[1].counts[count]
            })
    };
    (0..COUNTS.len()).find(|&count| all.iter().all(|values| increases(count, values)))
}

/// The values that patterns find in a log, by pattern; empty if the log has more bytes than are left.
pub(crate) fn in_log(log: &Path, patterns: &[Regex], bytes_left: &mut u64) -> Vec<Vec<HistoryValue>> {
    let mut found = vec![vec![]; patterns.len()];
    read_states(log, bytes_left, |line, text| {
        for (values, pattern) in found.iter_mut().zip(patterns) {
            let Some(value) = last_number(pattern, text) else { continue };
            push(values, of_line(value, line, text));
        }
    });
    found
}

/// The values of the metrics that a log names without a declaration, by name; empty if the log has more bytes than are
/// left.
pub(crate) fn detected_in_log(log: &Path, bytes_left: &mut u64) -> Vec<(String, Vec<HistoryValue>)> {
    let mut found: Vec<(String, Vec<HistoryValue>)> = vec![];
    read_states(log, bytes_left, |line, text| {
        for (name, value) in detect::detect(&String::from_utf8_lossy(text)) {
            let value = of_line(value, line, text);
            match found.iter().position(|(known, _)| *known == name) {
                Some(place) => push(&mut found[place].1, value),
                None if found.len() < MAX_DETECTED => found.push((name, vec![value])),
                None => {}
            }
        }
    });
    found
}

/// The metrics that a line names without a declaration, by lowercase name; of a progress bar those of all its states.
pub(crate) fn detected_in_line(text: &[u8]) -> Vec<(String, f64)> {
    String::from_utf8_lossy(text).split('\r').flat_map(detect::detect).collect()
}

fn of_line(value: f64, line: &Line<'_>, text: &[u8]) -> HistoryValue {
    let time = humantime::parse_rfc3339(line.time).ok().map(Time::of);
    HistoryValue { value, time, attempt: line.attempt, counts: counts(text) }
}

/// Reads the lines of a log, and each state of a progress bar as a line; none if the log has more bytes than are left.
fn read_states(log: &Path, bytes_left: &mut u64, mut note: impl FnMut(&Line<'_>, &[u8])) {
    let parts = std::fs::read_dir(log).into_iter().flatten().flatten();
    let size: u64 = parts.filter_map(|part| Some(part.metadata().ok()?.len())).sum();
    let Some(left) = bytes_left.checked_sub(size) else { return };
    *bytes_left = left;
    // A long line comes in pieces, and those of two streams may alternate.
    let mut open = [vec![], vec![]];
    let mut each = |_: usize, line: &Line<'_>| {
        let open = match line.stream {
            Stream::Stdout => &mut open[0],
            Stream::Stderr => &mut open[1],
            Stream::Jobc => return Ok(()),
        };
        // A progress bar writes its states one after the other.
        let mut states = line.text.split(|&byte| byte == b'\r').peekable();
        while let Some(state) = states.next() {
            open.extend_from_slice(state);
            if states.peek().is_some() || line.ends || open.len() > MAX_LINE_BYTES {
                note(line, &std::mem::take(open));
            }
        }
        Ok(())
    };
    let mut reader = Reader::new([log.to_owned()], LineFilter::default());
    while reader.read(&mut each).unwrap_or(false) {}
}

/// The values of a file, unless it was changed after the end of the job.
pub(crate) fn in_file(
    (modified, values): (SystemTime, Vec<FileValue>),
    ended: Option<Time>,
) -> Vec<HistoryValue> {
    if ended.is_some_and(|ended| Time::of(modified).since(ended) > WRITE_TOLERANCE) {
        return vec![];
    }
    let mut all = vec![];
    for FileValue { value, counts, line } in values {
        let [step, iteration, epoch] = counts;
        push(
            &mut all,
            HistoryValue { value, time: None, attempt: 1, counts: [step, iteration, epoch, line] },
        );
    }
    all
}

fn push(values: &mut Vec<HistoryValue>, value: HistoryValue) {
    if values.len() >= MAX_VALUES {
        *values = thinned(values);
    }
    values.push(value);
}

/// The lowest and the highest of each four values of an attempt, in their order.
fn thinned(values: &[HistoryValue]) -> Vec<HistoryValue> {
    let attempts = values.chunk_by(|a, b| a.attempt == b.attempt);
    let fours = attempts.flat_map(|attempt| attempt.chunks(4));
    fours
        .flat_map(|four| {
            let by_value = |a: &usize, b: &usize| four[*a].value.total_cmp(&four[*b].value);
            let low = (0..four.len()).min_by(by_value).unwrap_or(0);
            let high = (0..four.len()).max_by(by_value).unwrap_or(0);
            let both = if low == high { vec![low] } else { vec![low.min(high), low.max(high)] };
            both.into_iter().map(|place| four[place])
        })
        .collect()
}

/// The counts that a line of a log names: `step 200`, `iter: 5`, `'epoch': 0.5`.
fn counts(text: &[u8]) -> [Option<f64>; COUNTS.len()] {
    static PATTERNS: LazyLock<[Regex; 3]> = LazyLock::new(|| {
        COUNT_KEYS.map(|keys| {
            let keys = keys.join("|");
            Regex::new(&format!(r#"(?i)\b(?:{keys})\b["']?[ \t:=#\[("']*([0-9]+(?:\.[0-9]+)?)"#))
                .expect("the keys are words")
        })
    });
    let [step, iteration, epoch] = [0, 1, 2].map(|count| last_number(&PATTERNS[count], text));
    [step, iteration, epoch, None]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(text: &str) -> [Option<f64>; 3] {
        let [step, iteration, epoch, _] = counts(text.as_bytes());
        [step, iteration, epoch]
    }

    #[test]
    fn a_line_names_its_step() {
        assert_eq!(counted("step 200: train loss 2.4, val loss 2.5"), [Some(200.0), None, None]);
        assert_eq!(counted("iter 10: loss 3.2, time 5.0ms"), [None, Some(10.0), None]);
        assert_eq!(counted("{'loss': 0.5, 'epoch': 0.03}"), [None, None, Some(0.03)]);
        assert_eq!(
            counted(" iteration      100/  500000 | lm loss: 1.0E+01 | global_step=7"),
            [Some(7.0), Some(100.0), None]
        );
        assert_eq!(counted("Epoch: [0]  [  10/5004]  loss: 6.9"), [None, None, Some(0.0)]);
        assert_eq!(counted("Epoch 3:  45%|####      | 45/100 [loss=0.3]"), [None, None, Some(3.0)]);
        assert_eq!(counted("timestep 5, steps 3, stepping, epoch"), [None, None, None]);
    }

    fn values(counts: &[(u32, Option<f64>, Option<f64>)]) -> Vec<HistoryValue> {
        let value = |&(attempt, step, epoch): &(u32, Option<f64>, Option<f64>)| HistoryValue {
            value: 1.0,
            time: None,
            attempt,
            counts: [step, None, epoch, None],
        };
        counts.iter().map(value).collect()
    }

    #[test]
    fn an_axis_increases_with_every_value() {
        let common =
            |all: &[Vec<HistoryValue>]| common_count(&all.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let steps = values(&[(1, Some(1.0), Some(1.0)), (1, Some(2.0), Some(1.0))]);
        assert_eq!(common(std::slice::from_ref(&steps)), Some(0));
        // Neither a step that starts again in each epoch nor an epoch with two values can be an axis.
        let again =
            values(&[(1, Some(1.0), Some(1.0)), (1, Some(2.0), Some(1.0)), (1, Some(1.0), Some(2.0))]);
        assert_eq!(common(&[again]), None);
        let epochs = values(&[(1, None, Some(1.0)), (1, None, Some(2.0))]);
        assert_eq!((common(std::slice::from_ref(&epochs)), common(&[steps, epochs])), (Some(2), None));
        let restarted = values(&[(1, Some(1.0), None), (1, Some(2.0), None), (2, Some(1.0), None)]);
        assert_eq!(common(&[restarted]), Some(0));
    }

    #[test]
    fn every_value_of_a_log_is_found_at_its_time() {
        let scratch = tempfile::tempdir().unwrap();
        let text = "2026-11-21T13:32:53.250123Z stdout F 1 step 1 loss=0.5\n\
                    2026-11-21T13:32:54.250123Z stdout P 1 step 2 lo\n\
                    2026-11-21T13:32:54.350123Z stderr F 1 loss=9\n\
                    2026-11-21T13:32:55.250123Z stdout F 1 ss=0.25\n\
                    2026-11-21T13:32:56.250123Z jobc F 0 loss=7\n\
                    2026-11-21T13:32:57.250123Z stdout F 2 step 1 loss=nan\rstep 2 loss=3\rnothing\n";
        std::fs::write(scratch.path().join("000001.log"), text).unwrap();
        let patterns = [Regex::new("loss=([0-9.]+|nan)").unwrap(), Regex::new("accuracy=([0-9.]+)").unwrap()];
        let found = in_log(scratch.path(), &patterns, &mut 10_000);
        let shown: Vec<String> = found[0]
            .iter()
            .map(|value| format!("{} {:?} {}", value.value, value.counts[0], value.time.unwrap()))
            .collect();
        assert_eq!(
            shown,
            [
                "0.5 Some(1.0) 2026-11-21T13:32:53.250Z",
                "9 None 2026-11-21T13:32:54.350Z",
                "0.25 Some(2.0) 2026-11-21T13:32:55.250Z",
                "NaN Some(1.0) 2026-11-21T13:32:57.250Z",
                "3 Some(2.0) 2026-11-21T13:32:57.250Z",
            ]
        );
        assert_eq!(found[1], []);
        let mut left = 10;
        assert_eq!((in_log(scratch.path(), &patterns, &mut left), left), (vec![vec![], vec![]], 10));
    }

    #[test]
    fn many_values_keep_their_extremes() {
        let mut all = vec![];
        for step in 0..100_000_u32 {
            let value = if step == 77_777 { 50.0 } else { 1.0 };
            let counts = [Some(f64::from(step)), None, None, None];
            push(&mut all, HistoryValue { value, time: None, attempt: 1, counts });
        }
        assert!(all.len() <= MAX_VALUES);
        assert!(all.iter().any(|value| (value.value, value.counts[0]) == (50.0, Some(77_777.0))));
        assert_eq!(common_count(&[all.as_slice()]), Some(0), "they stay in order");
    }

    #[test]
    fn a_file_of_a_later_run_is_no_history() {
        let values = || vec![FileValue { value: 1.0, counts: [None; 3], line: Some(1.0) }];
        let ended = Time::from_millis(10_000);
        let modified = |millis| SystemTime::from(Time::from_millis(millis));
        assert_eq!(in_file((modified(11_000), values()), Some(ended)).len(), 1);
        assert_eq!(in_file((modified(20_000), values()), Some(ended)), []);
        assert_eq!(in_file((modified(20_000), values()), None).len(), 1, "the job still runs");
    }
}
