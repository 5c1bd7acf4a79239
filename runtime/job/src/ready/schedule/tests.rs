use regex::bytes::Regex;

use super::*;

/// A server at a port that is probed every 5 seconds from second 2 on, and must be ready after 30.
fn server() -> ReadinessCheck {
    ReadinessCheck {
        task: 7,
        attempt: 1,
        probe: Probe::Port(80),
        delay: Duration::from_secs(2),
        every: Duration::from_secs(5),
        try_timeout: Duration::from_secs(4),
        timeout: Duration::from_secs(30),
        keep: false,
    }
}

/// Follows a task from second 1 on until a time, where each probe takes half a second, and shows the schedule's steps.
///
/// `answers` gives the result of a try by its time. `frozen` is when the tasks are frozen, and when they go on.
fn check(
    watched: ReadinessCheck,
    until: u64,
    answers: impl Fn(u64) -> bool,
    frozen: Option<(u64, u64)>,
) -> String {
    let mut schedule = Schedule::default();
    let mut text = String::new();
    let mut now = Duration::from_secs(1);
    schedule.watch(now, watched);
    let half = Duration::from_millis(500);
    while now < Duration::from_secs(until) {
        for (time, pauses) in frozen.into_iter().flat_map(|(from, to)| [(from, true), (to, false)]) {
            if now == Duration::from_secs(time) {
                let change = if pauses { Schedule::pause } else { Schedule::resume };
                change(&mut schedule, now);
                text += &format!("{:>5}s {}\n", now.as_secs_f64(), if pauses { "frozen" } else { "goes on" });
            }
        }
        let mut output = |what: String| text += &format!("{:>5}s {what}\n", now.as_secs_f64());
        match schedule.next(now) {
            NextStep::Probe(due) => {
                let good = answers(now.as_secs());
                output(format!(
                    "try for {}s: {}",
                    due.within.as_secs_f64(),
                    if good { "good" } else { "bad" }
                ));
                let result = if good { Ok(()) } else { Err("connection refused".to_owned()) };
                if let Some(report) = schedule.record_result(now + half, &due, result) {
                    output(format!("report {:?}", report.ready));
                }
            }
            NextStep::Report(report) => output(format!("report {:?}", report.ready)),
            NextStep::Wait(None) => {}
            NextStep::Wait(Some(at)) => assert!(at > now, "it waits for {at:?}"),
        }
        now += half;
    }
    text
}

#[test]
fn a_task_is_probed_until_it_is_ready() {
    insta::assert_snapshot!(check(server(), 60, |time| time >= 12, None));
}

#[test]
fn a_task_that_is_not_ready_in_time_is_reported() {
    insta::assert_snapshot!(check(server(), 60, |_| false, None));
}

#[test]
fn with_keep_a_task_is_probed_forever() {
    // One or two consecutive failures are tolerated, three are not.
    let answers = |time: u64| !(20..30).contains(&time) && !(40..60).contains(&time);
    insta::assert_snapshot!(check(ReadinessCheck { keep: true, ..server() }, 80, answers, None));
}

#[test]
fn no_time_runs_out_while_it_is_frozen() {
    insta::assert_snapshot!(check(server(), 140, |_| false, Some((10, 110))));
}

#[test]
fn a_timeout_without_a_probe_is_reported() {
    let watched = ReadinessCheck { delay: Duration::from_secs(40), ..server() };
    insta::assert_snapshot!(check(watched, 60, |_| true, None));
}

#[test]
fn a_try_during_which_it_was_frozen_says_nothing() {
    let mut schedule = Schedule::default();
    let second = Duration::from_secs;
    schedule.watch(second(0), ReadinessCheck { keep: true, timeout: second(8), ..server() });
    let NextStep::Probe(first) = schedule.next(second(2)) else { panic!("it is due") };
    schedule.pause(second(3));
    schedule.resume(second(4));
    assert_eq!(schedule.record_result(second(5), &first, Ok(())), None);
    let NextStep::Wait(Some(next)) = schedule.next(second(5)) else { panic!("it is tried again") };
    assert_eq!(next, second(9));
}

#[test]
fn a_log_line_makes_a_task_ready() {
    let log = || Probe::Log(Regex::new("listening on [0-9]+").expect("a pattern"));
    let mut schedule = Schedule::default();
    schedule.watch(Duration::ZERO, ReadinessCheck { probe: log(), keep: true, attempt: 2, ..server() });
    assert!(schedule.wants_lines(7));
    assert_eq!(schedule.line(7, 2, b"listening on port 80"), None);
    assert_eq!(schedule.line(7, 1, b"listening on 80"), None, "another attempt's");
    assert_eq!(schedule.line(8, 2, b"listening on 80"), None, "another task's");
    assert_eq!(
        schedule.line(7, 2, b"\xff listening on 80"),
        Some(Report { task: 7, attempt: 2, ready: Ok(()) })
    );
    assert_eq!(schedule.line(7, 2, b"listening on 80"), None, "said before");
    assert!(!schedule.wants_lines(7));
    insta::assert_snapshot!(check(ReadinessCheck { probe: log(), ..server() }, 40, |_| true, None));
}

#[test]
fn a_new_attempt_starts_over() {
    let mut schedule = Schedule::default();
    schedule.watch(Duration::ZERO, server());
    let NextStep::Probe(first) = schedule.next(Duration::from_secs(2)) else { panic!("it is due") };
    schedule.watch(Duration::from_secs(3), ReadinessCheck { attempt: 2, ..server() });
    assert_eq!(schedule.record_result(Duration::from_secs(4), &first, Ok(())), None);
    let NextStep::Probe(second) = schedule.next(Duration::from_secs(5)) else { panic!("it is due") };
    let report = schedule.record_result(Duration::from_secs(6), &second, Ok(()));
    assert_eq!(report, Some(Report { task: 7, attempt: 2, ready: Ok(()) }));
    schedule.watch(Duration::from_secs(7), ReadinessCheck { attempt: 3, ..server() });
    schedule.unwatch(7);
    assert!(matches!(schedule.next(Duration::from_mins(1)), NextStep::Wait(None)));
}
