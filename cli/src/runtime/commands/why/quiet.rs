//! Tasks of a running job that print nothing and use no CPU: where nothing watches the job, its user looks there first.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;

use jobc_place::Place;
use jobc_place::job::JobSummary;
use jobc_place::logs::{LogItem, LogRequest};
use jobc_place::state::JobState;
use jobc_place::time::{Time, format_duration};
use jobc_place::usage::TaskUsage;

/// How long a task has printed nothing before that is a sign.
const QUIET: Duration = Duration::from_mins(5);

/// Below it, in thousandths of a processor, a program only waits.
const IDLE_MILLIS: u64 = 10;

/// Between two measurements, where a place has only sums.
const INTERVAL: Duration = Duration::from_secs(2);

/// What is said of the quiet tasks of a running job; nothing where none is, or the place cannot tell.
pub(super) fn reasons(place: &dyn Place, job: &JobSummary) -> Vec<String> {
    if job.state != JobState::Running {
        return vec![];
    }
    let (Some(last), now) = (last_lines(place, job), Time::now()) else { return vec![] };
    let is_quiet = |time: &Time| now.since(*time) >= QUIET;
    // A job that prints costs one request.
    if !last.is_empty() && !last.values().any(is_quiet) && job.tasks.active == last.len() as u64 {
        return vec![];
    }
    let Ok(usage) = measured(place, &job.name) else { return vec![] };
    sentences(&last, &usage, job.started, now)
}

/// When each task printed its last line; nothing where the place does not keep times.
fn last_lines(place: &dyn Place, job: &JobSummary) -> Option<BTreeMap<String, Time>> {
    let request = LogRequest { tail: Some(1), is_search: true, ..LogRequest::default() };
    let (mut last, mut has_times) = (BTreeMap::new(), true);
    let passed = place.logs(&job.name, &request, &mut |item| {
        if let LogItem::Line { task, line } = item {
            match Time::parse(line.time) {
                Some(time) => drop(last.insert(task.to_owned(), time)),
                None => has_times = false,
            }
        }
        ControlFlow::Continue(())
    });
    (passed.is_ok() && has_times).then_some(last)
}

fn measured(place: &dyn Place, name: &str) -> jobc_sys::error::Result<Vec<TaskUsage>> {
    let first = place.usage(name)?;
    if first.iter().all(|usage| usage.cpu_millis.is_some()) {
        return Ok(first);
    }
    std::thread::sleep(INTERVAL);
    let mut second = place.usage(name)?;
    for usage in &mut second {
        if let Some(before) = first.iter().find(|before| before.task == usage.task) {
            usage.compare(before);
        }
    }
    Ok(second)
}

/// The task that was silent first, with the others of its kind. One that has printed nothing is silent since the start.
fn sentences(
    last: &BTreeMap<String, Time>,
    usage: &[TaskUsage],
    started: Option<Time>,
    now: Time,
) -> Vec<String> {
    let silent = |usage: &TaskUsage| {
        let task = usage.task.to_string();
        let since = last.get(&task).copied().or(started)?;
        let time = now.since(since);
        (time >= QUIET).then_some((since, task, usage.cpu_millis))
    };
    let mut all: Vec<(Time, String, Option<u64>)> = usage.iter().filter_map(silent).collect();
    all.sort();
    let idle: Vec<&(Time, String, Option<u64>)> =
        all.iter().filter(|(_, _, cpu)| cpu.is_some_and(|cpu| cpu < IDLE_MILLIS)).collect();
    let others = |number: usize| match number {
        0 => String::new(),
        1 => ", and 1 more task later".to_owned(),
        more => format!(", and {more} more tasks later"),
    };
    match (idle.as_slice(), all.as_slice()) {
        ([(since, task, _), rest @ ..], _) => vec![format!(
            "`{task}` has printed nothing for {} and uses no CPU{}: it may be stalled",
            format_duration(now.since(*since)),
            others(rest.len())
        )],
        ([], [(since, task, Some(_)), rest @ ..]) if all.len() == usage.len() => vec![format!(
            "`{task}` has printed nothing for {} and uses CPU{}: it computes, or waits for others without sleeping, as NCCL does",
            format_duration(now.since(*since)),
            others(rest.len())
        )],
        _ => vec![],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tasks as seconds since the last line, none for no line, and thousandths of a processor.
    fn said(tasks: &[(Option<u64>, Option<u64>)]) -> Vec<String> {
        let now = Time::from_millis(10_000_000);
        let ago = |seconds: u64| Time::from_millis(10_000_000 - seconds * 1000);
        let name = |index: usize| format!("rank-{index}");
        let last =
            tasks.iter().enumerate().filter_map(|(index, (line, _))| Some((name(index), ago((*line)?))));
        let usage = tasks.iter().enumerate().map(|(index, (_, cpu_millis))| TaskUsage {
            task: name(index).parse().expect("a task"),
            cpu_millis: *cpu_millis,
            ..TaskUsage::default()
        });
        sentences(&last.collect(), &usage.collect::<Vec<_>>(), Some(ago(7200)), now)
    }

    #[test]
    fn the_task_that_was_silent_first_is_named() {
        let quiet = [(Some(840), Some(0)), (Some(900), Some(3)), (Some(10), Some(0))];
        assert_eq!(
            said(&quiet),
            [
                "`rank-1` has printed nothing for 15 min and uses no CPU, and 1 more task later: it may be stalled"
            ]
        );
        // It hangs before its first line.
        assert_eq!(
            said(&[(None, Some(0))]),
            ["`rank-0` has printed nothing for 2 h 0 min and uses no CPU: it may be stalled"]
        );
    }

    #[test]
    fn a_task_that_computes_or_prints_is_left_alone() {
        assert_eq!(said(&[(Some(299), Some(0)), (Some(299), Some(0))]), [""; 0]);
        assert_eq!(said(&[(Some(900), Some(1000)), (Some(1), Some(1000))]), [""; 0]);
        assert_eq!(said(&[(Some(900), None)]), [""; 0]);
    }

    #[test]
    fn ranks_that_spin_are_said_to() {
        assert_eq!(
            said(&[(Some(840), Some(990)), (Some(900), Some(1000))]),
            [
                "`rank-1` has printed nothing for 15 min and uses CPU, and 1 more task later: it computes, or waits for others without sleeping, as NCCL does"
            ]
        );
    }
}
