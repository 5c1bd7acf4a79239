//! How a group of a run is: from what its script wrote, then from what Slurm says.

use super::queue::QueueRow;
use super::snapshot::{GroupChange, GroupEvent};

/// How a group is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GroupState {
    /// It was not submitted yet, or is held.
    Held,
    /// It waits to start.
    Pending,
    /// It runs.
    Running,
    /// It was started, and an operator has suspended it.
    Paused,
    /// It has ended.
    Ended(GroupEnd),
    /// Neither its script nor the queue says anything: `scontrol` and `sacct` may.
    Unknown,
}

/// How a group ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GroupEnd {
    Succeeded,
    /// With an exit code if it is known, and Slurm's word where that says more.
    Failed {
        code: Option<i32>,
        word: Option<String>,
    },
    TimedOut,
    Stopped,
    /// It never started: a dependency failed, or it was canceled.
    NeverStarted,
}

/// The state of a group from its events and its row in the queue. `is_stopped` is whether its user stopped the run.
pub(crate) fn state(events: &[GroupEvent], row: Option<&QueueRow>, is_stopped: bool) -> GroupState {
    let waits = row.is_some_and(|row| is_waiting(&row.state));
    match events.last().map(|event| &event.what) {
        // It was started again by hand, or by Slurm, after it had ended.
        Some(GroupChange::Ended { .. } | GroupChange::Verdict { .. }) if waits => {
            if row.is_some_and(is_held) { GroupState::Held } else { GroupState::Pending }
        }
        // The script has not written yet that it runs again.
        Some(GroupChange::Ended { .. }) if row.is_some_and(|row| runs_since(row, events)) => {
            GroupState::Running
        }
        Some(GroupChange::Ended { .. }) if limit(events).is_some() => GroupState::Ended(GroupEnd::TimedOut),
        Some(GroupChange::Ended { code, reason }) => {
            GroupState::Ended(end_of_script(*code, reason.as_deref(), is_stopped))
        }
        Some(GroupChange::Verdict { state, code }) => verdict(state, code, has_started(events), is_stopped)
            .map_or(GroupState::Unknown, GroupState::Ended),
        _ => match row {
            Some(row) => of_row(row, has_started(events), is_stopped),
            None => GroupState::Unknown,
        },
    }
}

/// The limit of the job that jobc on the nodes says it reached, if it ended by it.
pub(crate) fn limit(events: &[GroupEvent]) -> Option<&str> {
    match events {
        [.., GroupEvent { what: GroupChange::Limit { why }, .. }, _] => Some(why),
        _ => None,
    }
}

/// Whether Slurm has started a job after the last of its events.
fn runs_since(row: &QueueRow, events: &[GroupEvent]) -> bool {
    let last = events.last().map_or(0, |event| event.time);
    row.state == "RUNNING" && row.started.is_some_and(|started| started > last)
}

/// The start of a group whose script does not write it, if Slurm says more than the events.
pub(crate) fn started(events: &[GroupEvent], row: &QueueRow) -> Option<GroupEvent> {
    let time = row.started.filter(|_| !is_waiting(&row.state) && !row.nodes.is_empty())?;
    let known = events.iter().filter(|event| matches!(event.what, GroupChange::Started { .. }));
    let (count, last) = known.fold((0, None), |(count, _), event| (count + 1, Some(event.time)));
    let what = GroupChange::Started { restarts: count, nodes: row.nodes.clone() };
    last.is_none_or(|last| last < time).then_some(GroupEvent { time, what })
}

/// When a group ended.
pub(crate) fn ended(events: &[GroupEvent], row: Option<&QueueRow>) -> u64 {
    let of_events = events.last().filter(|event| matches!(event.what, GroupChange::Verdict { .. }));
    of_events.map(|event| event.time).or_else(|| row?.ended).unwrap_or(u64::MAX)
}

fn has_started(events: &[GroupEvent]) -> bool {
    events.iter().any(|event| matches!(event.what, GroupChange::Started { .. }))
}

fn is_waiting(state: &str) -> bool {
    matches!(
        state,
        "PENDING"
            | "CONFIGURING"
            | "REQUEUED"
            | "REQUEUE_HOLD"
            | "REQUEUE_FED"
            | "SPECIAL_EXIT"
            | "RESV_DEL_HOLD"
    )
}

/// Whether processes may run in a state of Slurm.
pub(crate) fn is_active(state: &str) -> bool {
    matches!(state, "RUNNING" | "COMPLETING" | "SIGNALING" | "STAGE_OUT" | "RESIZING")
}

/// Whether a state of Slurm is an end.
pub(crate) fn is_final(state: &str) -> bool {
    verdict(state, "", true, false).is_some()
}

/// How a script ended by its own report: 143 means that a signal ended it.
fn end_of_script(code: i32, reason: Option<&str>, is_stopped: bool) -> GroupEnd {
    match (code, reason) {
        (0, _) => GroupEnd::Succeeded,
        (143, Some("TimeLimit")) => GroupEnd::TimedOut,
        (143, _) if is_stopped => GroupEnd::Stopped,
        (143, Some(word)) => GroupEnd::Failed { code: Some(143), word: Some(word.to_owned()) },
        (143, None) => GroupEnd::Stopped,
        _ => GroupEnd::Failed { code: Some(code), word: None },
    }
}

/// Whether a job that waits is held; the second reason is that of `scontrol requeuehold`.
fn is_held(row: &QueueRow) -> bool {
    row.reason.starts_with("JobHeld") || row.reason == "job requeued in held state"
}

fn of_row(row: &QueueRow, has_started: bool, is_stopped: bool) -> GroupState {
    match row.state.as_str() {
        "PENDING" if is_held(row) => GroupState::Held,
        "REQUEUE_HOLD" | "SPECIAL_EXIT" | "RESV_DEL_HOLD" => GroupState::Held,
        "SUSPENDED" | "STOPPED" => GroupState::Paused,
        state if is_waiting(state) => GroupState::Pending,
        state if is_active(state) => GroupState::Running,
        // Its script may be about to write how it ended.
        state => verdict(state, "", has_started, is_stopped).map_or(GroupState::Running, GroupState::Ended),
    }
}

/// How a group ended according to Slurm; `None` if it has not.
pub(crate) fn verdict(state: &str, code: &str, has_started: bool, is_stopped: bool) -> Option<GroupEnd> {
    // `CANCELLED by 1000`, `COMPLETED+`.
    let word = state.split([' ', '+']).next().unwrap_or_default();
    let failed =
        |word: Option<&str>| GroupEnd::Failed { code: exit_code(code), word: word.map(str::to_owned) };
    Some(match word {
        "COMPLETED" => GroupEnd::Succeeded,
        "FAILED" => failed(None),
        "TIMEOUT" | "DEADLINE" => GroupEnd::TimedOut,
        "CANCELLED" if is_stopped => GroupEnd::Stopped,
        "CANCELLED" if !has_started => GroupEnd::NeverStarted,
        "CANCELLED" => GroupEnd::Stopped,
        "OUT_OF_MEMORY" | "PREEMPTED" | "NODE_FAIL" | "BOOT_FAIL" | "REVOKED" | "LAUNCH_FAILED" => {
            failed(Some(word))
        }
        "LOST" => failed(Some("Lost")),
        _ => return None,
    })
}

/// The exit code of `CODE:SIGNAL`, as shells have it.
pub(crate) fn exit_code(text: &str) -> Option<i32> {
    let (code, signal) = text.split_once(':')?;
    let (code, signal): (i32, i32) = (code.parse().ok()?, signal.parse().ok()?);
    Some(if signal > 0 && signal < 65 { 128 + signal } else { code }).filter(|code| *code != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(state: &str, reason: &str) -> QueueRow {
        QueueRow { state: state.to_owned(), reason: reason.to_owned(), ..QueueRow::default() }
    }

    fn failed(code: Option<i32>, word: Option<&str>) -> GroupState {
        GroupState::Ended(GroupEnd::Failed { code, word: word.map(str::to_owned) })
    }

    /// The states of the reference, from the queue without a report of the script.
    #[test]
    fn each_slurm_state_is_mapped() {
        for (word, reason, is_stopped, expected) in [
            ("PENDING", "Priority", false, GroupState::Pending),
            ("PENDING", "JobHeldUser", false, GroupState::Held),
            ("PENDING", "JobHeldAdmin", false, GroupState::Held),
            ("PENDING", "job requeued in held state", false, GroupState::Held),
            ("CONFIGURING", "", false, GroupState::Pending),
            ("REQUEUED", "", false, GroupState::Pending),
            ("SUSPENDED", "", false, GroupState::Paused),
            ("REQUEUE_HOLD", "", false, GroupState::Held),
            ("SPECIAL_EXIT", "", false, GroupState::Held),
            ("RUNNING", "", false, GroupState::Running),
            ("COMPLETING", "", false, GroupState::Running),
            ("COMPLETED", "", false, GroupState::Ended(GroupEnd::Succeeded)),
            ("FAILED", "NonZeroExitCode", false, failed(None, None)),
            ("TIMEOUT", "TimeLimit", false, GroupState::Ended(GroupEnd::TimedOut)),
            ("DEADLINE", "", false, GroupState::Ended(GroupEnd::TimedOut)),
            ("OUT_OF_MEMORY", "", false, failed(None, Some("OUT_OF_MEMORY"))),
            ("CANCELLED", "", true, GroupState::Ended(GroupEnd::Stopped)),
            ("CANCELLED", "", false, GroupState::Ended(GroupEnd::NeverStarted)),
            ("PREEMPTED", "", false, failed(None, Some("PREEMPTED"))),
            ("NODE_FAIL", "NodeDown", false, failed(None, Some("NODE_FAIL"))),
            ("BOOT_FAIL", "", false, failed(None, Some("BOOT_FAIL"))),
        ] {
            assert_eq!(state(&[], Some(&row(word, reason)), is_stopped), expected, "{word} {reason}");
        }
        assert_eq!(state(&[], None, false), GroupState::Unknown);
    }

    #[test]
    fn a_job_that_runs_again_has_not_ended() {
        let ended = GroupChange::Ended { code: 143, reason: None };
        let events = [GroupEvent { time: 10, what: ended }];
        let running = |since| QueueRow { started: Some(since), ..row("RUNNING", "") };
        assert_eq!(state(&events, Some(&running(11)), false), GroupState::Running);
        let stopped = GroupState::Ended(GroupEnd::Stopped);
        assert_eq!(state(&events, Some(&running(9)), false), stopped);
        assert_eq!(state(&events, Some(&row("COMPLETING", "")), false), stopped);
    }

    #[test]
    fn the_word_of_the_script_comes_first() {
        let event = |what: GroupChange| GroupEvent { time: 1, what };
        let started = event(GroupChange::Started { restarts: 0, nodes: "n0".to_owned() });
        let ended = |code: i32, reason: Option<&str>| {
            event(GroupChange::Ended { code, reason: reason.map(str::to_owned) })
        };
        for (last, is_stopped, expected) in [
            (ended(0, None), false, GroupState::Ended(GroupEnd::Succeeded)),
            (ended(7, None), false, failed(Some(7), None)),
            (ended(124, None), false, failed(Some(124), None)),
            (ended(143, Some("TimeLimit")), false, GroupState::Ended(GroupEnd::TimedOut)),
            (ended(143, None), true, GroupState::Ended(GroupEnd::Stopped)),
            (ended(143, Some("Preempted")), false, failed(Some(143), Some("Preempted"))),
            (ended(143, None), false, GroupState::Ended(GroupEnd::Stopped)),
        ] {
            let events = [started.clone(), last];
            for row in [None, Some(row("FAILED", "x")), Some(row("COMPLETING", ""))] {
                assert_eq!(state(&events, row.as_ref(), is_stopped), expected, "{events:?} {row:?}");
            }
            assert_eq!(state(&events, Some(&row("PENDING", "BeginTime")), is_stopped), GroupState::Pending);
        }
        let requeued = [started.clone(), event(GroupChange::Requeued { code: 5 })];
        assert_eq!(state(&requeued, Some(&row("PENDING", "BeginTime")), false), GroupState::Pending);
        assert_eq!(state(&requeued, None, false), GroupState::Unknown);
        let verdict = event(GroupChange::Verdict { state: "NODE_FAIL".to_owned(), code: "0:0".to_owned() });
        assert_eq!(state(&[started.clone(), verdict], None, false), failed(None, Some("NODE_FAIL")));
        let killed = event(GroupChange::Verdict { state: "FAILED".to_owned(), code: "0:9".to_owned() });
        assert_eq!(state(&[started.clone(), killed], None, false), failed(Some(137), None));
        let cancelled = event(GroupChange::Verdict { state: "CANCELLED".to_owned(), code: String::new() });
        assert_eq!(state(&[started, cancelled], None, false), GroupState::Ended(GroupEnd::Stopped));
    }

    #[test]
    fn exit_codes_are_those_of_shells() {
        for (text, code) in [("7:0", Some(7)), ("0:9", Some(137)), ("0:125", None), ("0:0", None), ("", None)]
        {
            assert_eq!(exit_code(text), code, "{text}");
        }
    }
}
