//! What tasks used over time: as lines, or as a band where there are many.

use std::time::Duration;

use jobc_job::metrics::Sample;
use jobc_job::record::TaskRecord;
use jobc_job::time::Time;

use super::data::ReportData;

/// Samples within this time are merged.
const MIN_INTERVAL: Duration = Duration::from_millis(200);

/// Moments at which a band is computed.
const BAND_MOMENTS: u32 = 160;

/// A value between a sample and the one before it.
pub(super) type ValueFn = dyn Fn(&Sample, &Sample) -> Option<f64>;

/// A point: seconds since the job was submitted, and a value.
pub(super) type Point = (f64, f64);

/// The line of a task or a GPU: its pieces, one per attempt. A value for the time between two samples is a step.
#[derive(Clone, Debug)]
pub(super) struct Series {
    pub name: String,
    pub pieces: Vec<Vec<Point>>,
}

impl Series {
    /// The line of a task.
    pub(super) fn of_task(facts: &ReportData, task: &TaskRecord, value: &ValueFn) -> Self {
        let samples = facts.samples.get(&task.task).map(Vec::as_slice).unwrap_or_default();
        let second = |time: Time| time.since(facts.begin()).as_secs_f64();
        let mut pieces = vec![];
        for attempt in samples.chunk_by(|a, b| a.attempt == b.attempt) {
            let mut points = vec![];
            let mut before = &attempt[0];
            for (index, sample) in attempt.iter().enumerate().skip(1) {
                // The last sample of an attempt may come right after another, and a rate over such a short time is
                // useless.
                if sample.time.since(before.time) < MIN_INTERVAL && index > 1 {
                    continue;
                }
                if let Some(value) = value(sample, before) {
                    points.extend([(second(before.time), value), (second(sample.time), value)]);
                }
                before = sample;
            }
            // An attempt that ended before its second sample used the amount of the first, in the time since its start.
            if let [only] = attempt
                && only.last
                && let Some(first) = first_sample(facts, task, only)
                && let Some(value) = value(only, &first)
            {
                points.extend([(second(first.time), value), (second(only.time), value)]);
            }
            if !points.is_empty() {
                pieces.push(points);
            }
        }
        Self { name: task.task.to_string(), pieces }
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

/// A sample at the start of an attempt: nothing was used yet.
fn first_sample(facts: &ReportData, task: &TaskRecord, sample: &Sample) -> Option<Sample> {
    let attempts = facts.attempts(task);
    let started = attempts.iter().find(|attempt| attempt.number == sample.attempt)?.started?;
    let zero = |value: Option<u64>| value.map(|_| 0);
    let mut first = Sample { time: started, ..sample.clone() };
    first.usage.cpu_usec = zero(first.usage.cpu_usec);
    first.usage.read_bytes = zero(first.usage.read_bytes);
    first.usage.written_bytes = zero(first.usage.written_bytes);
    Some(first)
}

/// The points that fit in a plot: of each interval the minimum and the maximum, in their order.
pub(super) fn downsample(points: &[Point], whole: f64, buckets: usize) -> Vec<Point> {
    if points.len() <= buckets {
        return points.to_vec();
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    // a bucket's number, at most some hundreds
    let bucket = |point: &Point| (point.0 / whole * (buckets as f64 / 2.0)) as usize;
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
        let thin = downsample(&points, 10_000.0, 100);
        assert!(thin.len() <= 110, "{}", thin.len());
        assert!(thin.contains(&(7_777.0, 50.0)));
        assert!(thin.is_sorted_by(|a, b| a.0 <= b.0));
        assert_eq!(downsample(&points[..50], 10_000.0, 100), points[..50]);
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
