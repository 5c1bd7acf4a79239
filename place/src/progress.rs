//! How far a job is: done, total, and the time left.

use std::time::Duration;

use jobc_schema::progress::{DONE, TOTAL};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::MetricValue;
use crate::task::TaskStatus;
use crate::time::{Time, format_duration};

/// How far a role is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Progress {
    /// The role.
    pub role: String,
    /// What is done, rounded down.
    pub done: u64,
    /// What is to do in all, rounded down.
    pub total: u64,
    /// The share that is done, from 0 to 100.
    pub percent: u8,
    /// Seconds left at the mean rate of this attempt; null as long as that is not known, and once the task has ended.
    pub left_seconds: Option<u64>,
}

impl Progress {
    /// The progress of the role of a job that is the least far; none if no role reports any.
    pub fn of_job(metrics: &[MetricValue], tasks: &[TaskStatus], now: Time) -> Option<Self> {
        let done = metrics.iter().filter(|metric| metric.name == DONE);
        let all = done.filter_map(|done| of_role(done, metrics, tasks, now));
        all.min_by_key(|progress| progress.percent)
    }

    /// As text: `40%, 12 min left`.
    pub fn text(&self) -> String {
        match self.left_seconds {
            Some(left) => format!("{}%, {} left", self.percent, format_duration(Duration::from_secs(left))),
            None => format!("{}%", self.percent),
        }
    }
}

fn of_role(done: &MetricValue, metrics: &[MetricValue], tasks: &[TaskStatus], now: Time) -> Option<Progress> {
    let role = &done.task.role;
    let total = metrics.iter().find(|metric| metric.name == TOTAL && metric.task.role == *role)?.value.0;
    let value = done.value.0;
    if !value.is_finite() || !total.is_finite() || total <= 0.0 {
        return None;
    }
    let task = tasks.iter().find(|task| task.task == done.task);
    let runs = task.is_some_and(|task| !task.state.is_final() && task.attempt == done.attempt);
    let left = left(done, total, task.and_then(|task| task.started), now).filter(|_| runs);
    Some(Progress {
        role: role.clone(),
        done: whole(value),
        total: whole(total),
        percent: u8::try_from(whole(value / total * 100.0).min(100)).unwrap_or(100),
        left_seconds: left,
    })
}

/// The time left by the mean rate since the first value of the attempt, which need not be 0: a task may resume. Where only
/// the last value is known, since the start of the attempt.
fn left(done: &MetricValue, total: f64, started: Option<Time>, now: Time) -> Option<u64> {
    let (from, since) = match &done.first {
        Some(first) => (first.value.0, first.time),
        None => (0.0, started?),
    };
    let rate = (done.value.0 - from) / done.time.since(since).as_secs_f64();
    if !rate.is_finite() || rate <= 0.0 {
        return None;
    }
    let at_last = ((total - done.value.0) / rate).max(0.0);
    Some(whole((at_last - now.since(done.time).as_secs_f64()).max(0.0)))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast from a float saturates, which is the nearest number"
)]
fn whole(value: f64) -> u64 {
    value as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::{FirstValue, MetricNumber};
    use serde_json::json;

    fn metric(name: &str, value: f64, seconds: u64, first: Option<(f64, u64)>) -> MetricValue {
        MetricValue {
            name: name.to_owned(),
            value: MetricNumber(value),
            better: None,
            task: "train-0".parse().unwrap(),
            attempt: 1,
            time: Time::from_millis(seconds * 1000),
            first: first.map(|(value, seconds)| FirstValue {
                value: MetricNumber(value),
                time: Time::from_millis(seconds * 1000),
            }),
        }
    }

    fn task(state: &str) -> TaskStatus {
        let task =
            json!({"task": "train-0", "state": state, "attempt": 1, "started": "1970-01-01T00:00:10Z"});
        serde_json::from_value(task).unwrap()
    }

    fn check(metrics: &[MetricValue], state: &str, text: Option<&str>) {
        let found = Progress::of_job(metrics, &[task(state)], Time::from_millis(110_000));
        assert_eq!(found.map(|progress| progress.text()).as_deref(), text);
    }

    #[test]
    fn the_time_left_is_that_at_the_mean_rate() {
        let total = metric(TOTAL, 1000.0, 20, None);
        // 300 of 1000 in 90 s since the start, 10 s ago.
        check(&[metric(DONE, 300.0, 100, None), total.clone()], "running", Some("30%, 3 min left"));
        // A task that resumed at 200: 100 in 50 s, and 700 are left.
        let resumed = metric(DONE, 300.0, 100, Some((200.0, 50)));
        check(&[resumed.clone(), total.clone()], "running", Some("30%, 5 min left"));
        check(&[resumed, total.clone()], "failed", Some("30%"));
        // The first value gives no rate.
        check(&[metric(DONE, 300.0, 100, Some((300.0, 100))), total.clone()], "running", Some("30%"));
        check(&[metric(DONE, 2000.0, 100, None), total.clone()], "running", Some("100%, 0.0 s left"));
        for (value, other) in [(f64::NAN, total), (1.0, metric(TOTAL, 0.0, 1, None))] {
            check(&[metric(DONE, value, 100, None), other], "running", None);
        }
        check(&[metric(DONE, 1.0, 100, None)], "running", None);
    }
}
