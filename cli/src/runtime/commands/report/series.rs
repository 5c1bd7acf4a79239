//! What tasks used over time: as lines, or as a band where there are many.

use std::time::Duration;

use jobc_job::metrics::Sample;
use jobc_place::task::TaskStatus;
use jobc_place::time::Time;

use super::data::ReportData;

/// Samples within this time are merged.
const MIN_INTERVAL: Duration = Duration::from_millis(200);

/// Moments at which a band is computed.
const BAND_MOMENTS: u32 = 160;

/// A value between a sample and the one before it.
pub(super) type RateFn = fn(&Sample, &Sample) -> Option<f64>;

/// A value of a sample.
pub(super) type LevelFn = fn(&Sample) -> Option<f64>;

/// What is drawn of samples.
#[derive(Clone, Copy)]
pub(super) enum Value {
    /// What happens in the time between two samples.
    Rate(RateFn),
    /// What is held at a moment. `peak` is its maximum in the whole attempt, if that is counted.
    Level { of: LevelFn, peak: LevelFn },
}

/// A point: seconds since the job was submitted, and a value.
pub(super) type Point = (f64, f64);

/// The line of a task or a GPU: its pieces, one per attempt.
#[derive(Clone, Debug)]
pub(super) struct Series {
    pub name: String,
    pub pieces: Vec<Vec<Point>>,
}

impl Series {
    /// The line of a task.
    pub(super) fn of_task(facts: &ReportData, task: &TaskStatus, value: &Value) -> Self {
        let samples = facts.samples.get(&task.task).map(Vec::as_slice).unwrap_or_default();
        let second = |time: Time| time.since(facts.begin()).as_secs_f64();
        let pieces = samples.chunk_by(|a, b| a.attempt == b.attempt).map(|attempt| {
            let start = first_sample(task, &attempt[0]);
            match value {
                Value::Rate(of) => rates(attempt, start.as_ref(), &second, *of),
                Value::Level { of, peak } => levels(attempt, start.as_ref(), &second, (*of, *peak)),
            }
        });
        let pieces = pieces.filter(|points| !points.is_empty()).collect();
        Self { name: super::selection::label(&facts.job, &task.task), pieces }
    }

    /// Its largest value.
    pub(super) fn peak(&self) -> f64 {
        self.pieces.iter().flatten().map(|(_, value)| *value).fold(0.0, f64::max)
    }

    /// Its value at a moment.
    fn at(&self, second: f64) -> Option<f64> {
        let piece = self.pieces.iter().find(|piece| {
            piece.first().is_some_and(|first| first.0 <= second)
                && piece.last().is_some_and(|last| second <= last.0)
        })?;
        // Steps come in pairs: the value is that of the last point at or before the moment.
        let after = piece.partition_point(|point| point.0 <= second);
        piece.get(after.saturating_sub(1)).map(|point| point.1)
    }
}

/// What many lines have in common at each of some moments.
#[derive(Clone, Debug, Default)]
pub(super) struct Band {
    /// The moment, the lowest value, the median and the highest one.
    pub moments: Vec<(f64, [f64; 3])>,
}

impl Band {
    /// The band of these lines, over this many seconds.
    pub(super) fn of(all: &[Series], whole: f64) -> Self {
        let mut moments = vec![];
        for number in 0..=BAND_MOMENTS {
            let second = whole * f64::from(number) / f64::from(BAND_MOMENTS);
            let mut values: Vec<f64> = all.iter().filter_map(|series| series.at(second)).collect();
            values.sort_by(f64::total_cmp);
            if let (Some(low), Some(high)) = (values.first(), values.last()) {
                moments.push((second, [*low, values[values.len() / 2], *high]));
            }
        }
        Self { moments }
    }
}

/// What happened between two samples each: a step for the time between them.
fn rates(attempt: &[Sample], start: Option<&Sample>, second: &dyn Fn(Time) -> f64, of: RateFn) -> Vec<Point> {
    let (mut before, rest) = match (start, attempt) {
        (Some(start), all) => (start, all),
        (None, all) => (&all[0], &all[1..]),
    };
    let mut points = vec![];
    for sample in rest {
        // The last sample of an attempt may come right after another, and a rate over such a short time is useless.
        let is_only = points.is_empty() && sample.last;
        if sample.time.since(before.time) < MIN_INTERVAL && !is_only {
            continue;
        }
        if let Some(value) = of(sample, before) {
            points.extend([(second(before.time), value), (second(sample.time), value)]);
        }
        before = sample;
    }
    points
}

/// What was held at each sample, until the next one. Nothing is held any more when the last one is taken, so the value
/// before it stays; an attempt that was over before that is drawn by its peak.
fn levels(
    attempt: &[Sample],
    start: Option<&Sample>,
    second: &dyn Fn(Time) -> f64,
    (of, peak): (LevelFn, LevelFn),
) -> Vec<Point> {
    let mut points: Vec<Point> = vec![];
    for sample in attempt {
        let at = second(sample.time);
        let held = points.last().map(|point| point.1);
        if sample.last {
            match held.or_else(|| peak(sample)) {
                Some(value) if held.is_none() => {
                    let from = start.map_or(at, |start| second(start.time));
                    points.extend([(from, value), (at, value)]);
                }
                Some(value) => points.push((at, value)),
                None => {}
            }
        } else if let Some(value) = of(sample) {
            points.extend(held.map(|held| (at, held)));
            points.push((at, value));
        }
    }
    points
}

/// A sample at the start of an attempt: nothing was used yet.
fn first_sample(task: &TaskStatus, sample: &Sample) -> Option<Sample> {
    let started = task.attempts().find(|attempt| attempt.attempt == sample.attempt)?.started?;
    let zero = |value: Option<u64>| value.map(|_| 0);
    let mut first = Sample { time: started, ..sample.clone() };
    first.usage.cpu_usec = zero(first.usage.cpu_usec);
    first.usage.read_bytes = zero(first.usage.read_bytes);
    first.usage.written_bytes = zero(first.usage.written_bytes);
    Some(first)
}

/// The points that fit in a plot: of each interval the minimum and the maximum, in their order.
pub(super) fn downsample(points: &[Point], (from, to): (f64, f64), buckets: usize) -> Vec<Point> {
    if points.len() <= buckets {
        return points.to_vec();
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    // a bucket's number, at most some hundreds
    let bucket = |point: &Point| ((point.0 - from) / (to - from) * (buckets as f64 / 2.0)) as usize;
    let mut out = vec![];
    for chunk in points.chunk_by(|a, b| bucket(a) == bucket(b)) {
        let by_value = |a: &&Point, b: &&Point| a.1.total_cmp(&b.1);
        let (Some(low), Some(high)) = (chunk.iter().min_by(by_value), chunk.iter().max_by(by_value)) else {
            continue;
        };
        match low.0.total_cmp(&high.0) {
            std::cmp::Ordering::Less => out.extend([*low, *high]),
            std::cmp::Ordering::Greater => out.extend([*high, *low]),
            std::cmp::Ordering::Equal => out.push(*high),
        }
    }
    out
}

/// A rate in units per second.
pub(super) fn rate(sample: &Sample, before: &Sample, of: fn(&Sample) -> Option<u64>) -> Option<f64> {
    let seconds = sample.time.since(before.time).as_secs_f64();
    let more = of(sample)?.checked_sub(of(before)?)?;
    (seconds > 0.0).then(|| float(more) / seconds)
}

#[allow(clippy::cast_precision_loss)] // a drawing has a thousand places
pub(super) fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_survive_thinning() {
        let points: Vec<Point> =
            (0..10_000).map(|index| (f64::from(index), if index == 7_777 { 50.0 } else { 1.0 })).collect();
        let thin = downsample(&points, (0.0, 10_000.0), 100);
        assert!(thin.len() <= 110, "{}", thin.len());
        assert!(thin.contains(&(7_777.0, 50.0)));
        assert!(thin.is_sorted_by(|a, b| a.0 <= b.0));
        assert_eq!(downsample(&points[..50], (0.0, 10_000.0), 100), points[..50]);
    }

    fn sample(millis: u64, memory: u64, last: bool) -> Sample {
        serde_json::from_value(serde_json::json!({
            "time": Time::from_millis(millis), "task": "a-0", "attempt": 1, "cpu_usec": millis * 500, "memory": memory,
            "memory_peak": 70, "last": last,
        }))
        .unwrap()
    }

    fn drawn(samples: &[Sample], start: Option<&Sample>) -> (Vec<Point>, Vec<Point>) {
        let second = |time: Time| float(time.millis()) / 1000.0;
        let memory: LevelFn = |sample| sample.usage.memory.map(float);
        let peak: LevelFn = |sample| sample.usage.memory_peak.map(float);
        let cpu: RateFn = |sample, before| sample.cpu_millis_since(before).map(float);
        (levels(samples, start, &second, (memory, peak)), rates(samples, start, &second, cpu))
    }

    #[test]
    fn a_short_attempt_has_a_line_until_its_end() {
        let mut start = sample(1000, 0, false);
        start.usage.cpu_usec = Some(0);
        let (memory, cpu) = drawn(&[sample(1200, 40, false), sample(3000, 2, true)], Some(&start));
        assert_eq!(
            memory,
            [(1.2, 40.0), (3.0, 40.0)],
            "the memory at its end is what the kernel still caches"
        );
        assert_eq!(cpu.first().map(|point| point.0.to_bits()), Some(1.0_f64.to_bits()), "from its start");
        // One that was over before the first sample is drawn by its peak.
        let (memory, _) = drawn(&[sample(1100, 0, true)], Some(&start));
        assert_eq!(memory, [(1.0, 70.0), (1.1, 70.0)]);
    }

    #[test]
    fn memory_stays_until_the_next_sample() {
        let samples = [sample(1000, 10, false), sample(2000, 30, false)];
        let (memory, cpu) = drawn(&samples, None);
        assert_eq!(memory, [(1.0, 10.0), (2.0, 10.0), (2.0, 30.0)]);
        assert_eq!(cpu, [(1.0, 500.0), (2.0, 500.0)]);
    }

    #[test]
    fn a_band_covers_the_existing_lines() {
        let series = |from: f64, to: f64, value: f64| Series {
            name: String::new(),
            pieces: vec![vec![(from, value), (to, value)], vec![(to + 1.0, 0.0), (to + 2.0, 0.0)]],
        };
        let all = [series(0.0, 8.0, 1.0), series(0.0, 8.0, 3.0), series(4.0, 8.0, 7.0)];
        let band = Band::of(&all, 16.0);
        let at = |second: f64| {
            band.moments.iter().find(|moment| (moment.0 - second).abs() < 1e-9).map(|moment| moment.1)
        };
        assert_eq!(at(0.0), Some([1.0, 3.0, 3.0]));
        assert_eq!(at(4.0), Some([1.0, 3.0, 7.0]));
        assert_eq!(at(8.5), None, "between two attempts");
        assert_eq!(at(9.5), Some([0.0, 0.0, 0.0]));
        assert_eq!(at(16.0), None);
    }
}
