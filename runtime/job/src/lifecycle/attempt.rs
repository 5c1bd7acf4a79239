//! The events in an attempt of a task, from its container to its end.

use std::time::Duration;

use super::action::{Action, EndSignal};
use super::input::AttemptFacts;
use super::task::{EndReason, TaskNumber};
use super::timers::Timer;
use super::{Lifecycle, format};
use jobc_container::process::Exit;
use jobc_place::exit_code;
use jobc_place::exit_text;
use jobc_place::task::TaskState;
use jobc_place::verdict::{Cut, Facts, is_preflight, judge, says_out_of_memory};

impl Lifecycle {
    /// Its container is being created.
    pub(super) fn created(&mut self, time: Duration, number: TaskNumber) {
        if self.tasks[number].state != TaskState::Creating {
            return;
        }
        self.set_state(number, TaskState::Created);
        if self.progress[number].ending.is_some() {
            return self.signal(time, number, Duration::ZERO);
        }
        match self.progress[number].gang {
            Some(gang) if !self.gangs[gang].open => {
                self.progress[number].counted_by_gang = true;
                self.gangs[gang].created += 1;
                self.complete.insert(gang);
            }
            _ => self.startable.push(number),
        }
    }

    /// A program runs.
    pub(super) fn started(&mut self, time: Duration, number: TaskNumber) {
        if self.tasks[number].state != TaskState::Created || !self.progress[number].start_requested {
            return;
        }
        self.set_state(number, TaskState::Running);
        self.note_started(number);
        self.progress[number].started_at = Some(time);
        let role = &self.roles[self.tasks[number].role];
        if let Some(timeout) = role.timeout {
            self.timers.set(Timer::Attempt(number), time + timeout);
        }
        if role.has_ready_check {
            self.actions.push(Action::Watch(number));
        }
    }

    /// A container could not be made, or its program not be executed.
    pub(super) fn not_started(&mut self, time: Duration, number: TaskNumber, code: u8, why: String) {
        if !matches!(self.tasks[number].state, TaskState::Creating | TaskState::Created | TaskState::Stopping)
        {
            return;
        }
        self.leave_gang(number);
        self.finish_attempt(time, number, Exit::Code(code), Some(why), AttemptFacts::default(), true);
    }

    /// A task is ready, perhaps again.
    pub(super) fn ready(&mut self, number: TaskNumber) {
        if self.tasks[number].state == TaskState::Running {
            self.set_state(number, TaskState::Ready);
            self.note_ready(number);
        }
    }

    /// A task is not ready in time, or no longer ready.
    pub(super) fn not_ready(&mut self, time: Duration, number: TaskNumber, why: String) {
        match self.tasks[number].state {
            // Others have started since; as with Kubernetes' readiness probes it is reported, and the job continues.
            TaskState::Ready => self.set_state(number, TaskState::Running),
            TaskState::Running if !self.progress[number].ready => {
                let reason = EndReason::Failed { cut: Cut::NotReady, why };
                self.end_task(time, number, reason, None);
            }
            _ => {}
        }
    }

    /// An attempt's time is up.
    pub(super) fn attempt_timed_out(&mut self, time: Duration, number: TaskNumber) {
        let timeout = self.roles[self.tasks[number].role].timeout.unwrap_or_default();
        let why = format!("time limit {} reached", format::duration(timeout));
        self.end_task(time, number, EndReason::Failed { cut: Cut::TimeLimit, why }, None);
    }

    /// An attempt makes no progress.
    pub(super) fn stalled(&mut self, time: Duration, number: TaskNumber, why: String, is_final: bool) {
        if matches!(self.tasks[number].state, TaskState::Running | TaskState::Ready) {
            self.progress[number].is_final = is_final;
            self.end_task(time, number, EndReason::Failed { cut: Cut::Stall, why }, None);
        }
    }

    /// A process ended.
    pub(super) fn ended(
        &mut self,
        time: Duration,
        number: TaskNumber,
        exit: Exit,
        note: Option<String>,
        seen: AttemptFacts,
    ) {
        if !self.tasks[number].state.is_alive() {
            return;
        }
        if self.progress[number].start_requested {
            // It may have ended before it was seen running.
            self.note_started(number);
            return self.finish_attempt(time, number, exit, note, seen, false);
        }
        self.leave_gang(number);
        let note = note.or_else(|| Some("it ended before it was started".to_owned()));
        self.finish_attempt(time, number, exit, note, seen, true);
    }

    /// An attempt was cleaned up: decides whether it succeeded, is retried, or was the last one.
    fn finish_attempt(
        &mut self,
        time: Duration,
        number: TaskNumber,
        exit: Exit,
        note: Option<String>,
        seen: AttemptFacts,
        unstarted: bool,
    ) {
        let purpose = self.process_gone(number);
        let task = &mut self.tasks[number];
        task.exit = Some(exit);
        task.reason = note;
        if let Some(EndReason::Failed { why, .. }) = &purpose {
            task.reason = Some(match task.reason.take() {
                Some(note) => format!("{why}, {note}"),
                None => why.clone(),
            });
        }
        let is_resumed = !unstarted && self.asks_to_be_resumed(purpose.as_ref(), exit);
        let task = &mut self.tasks[number];
        if is_resumed {
            let why = if purpose == Some(EndReason::Suspended) { "suspended" } else { "asks to be resumed" };
            task.reason = Some(why.to_owned());
        }
        let cut = match &purpose {
            Some(EndReason::Failed { cut, .. }) => Some(*cut),
            _ => is_resumed.then_some(Cut::Preempted),
        };
        // What was ended because its role or job is over or is retried did not end by itself.
        let has_no_verdict = matches!(purpose, Some(EndReason::JobEnded | EndReason::Restart))
            || unstarted && purpose == Some(EndReason::Suspended);
        if !has_no_verdict {
            let exit =
                if purpose == Some(EndReason::Served) { Exit::Code(exit_code::SUCCEEDED) } else { exit };
            let ran_out = seen.oom_kills > 0 || task.reason.as_deref().is_some_and(says_out_of_memory);
            self.progress[number].ran_out = ran_out && exit != Exit::Code(exit_code::SUCCEEDED);
            self.progress[number].is_unfit =
                self.roles[task.role].has_preflight && is_preflight(&seen.lines, exit.code());
            task.verdict = Some(judge(&Facts {
                exit_code: Some(exit.code()),
                signal: exit.signal().map(exit_text::signal_name),
                reason: task.reason.clone(),
                word: task.reason.clone(),
                oom_kills: seen.oom_kills,
                cut,
                fault: seen.fault,
                has_gpus: self.roles[task.role].has_gpus,
                is_unstarted: unstarted,
                lines: seen.lines,
            }));
        }
        match purpose {
            Some(EndReason::JobEnded) => self.set_state(number, TaskState::Stopped),
            Some(EndReason::Served) => self.succeeded(time, number),
            Some(EndReason::Restart) => self.set_state(number, TaskState::Retrying),
            Some(EndReason::Suspended) if is_resumed || unstarted => self.suspended(number),
            None if is_resumed => self.resume(time, number),
            Some(EndReason::Failed { .. }) => self.failed(time, number, exit_code::TIMED_OUT, false),
            None | Some(EndReason::Suspended) if exit == Exit::Code(0) && !unstarted => {
                self.succeeded(time, number);
            }
            None | Some(EndReason::Suspended) => self.failed(time, number, exit.code(), unstarted),
        }
    }

    /// A task is removed before it was let go: its gang waits for it again.
    fn leave_gang(&mut self, number: TaskNumber) {
        let progress = &mut self.progress[number];
        if let Some(gang) = progress.gang.filter(|_| std::mem::take(&mut progress.counted_by_gang)) {
            self.gangs[gang].created -= 1;
        }
    }

    /// Asks a task to end, and has it killed when its time for that is over: its role's unless one is given.
    pub(super) fn end_task(
        &mut self,
        time: Duration,
        number: TaskNumber,
        purpose: EndReason,
        grace: Option<Duration>,
    ) {
        let grace = grace.unwrap_or(self.roles[self.tasks[number].role].grace);
        let progress = &mut self.progress[number];
        match self.tasks[number].state {
            TaskState::Creating => set_end_reason(&mut progress.ending, purpose),
            TaskState::Created | TaskState::Running | TaskState::Ready => {
                set_end_reason(&mut progress.ending, purpose);
                let grace = if progress.start_requested { grace } else { Duration::ZERO };
                self.signal(time, number, grace);
            }
            TaskState::Stopping => {
                set_end_reason(&mut progress.ending, purpose);
                self.timers.set_at_most(Timer::Kill(number), time + grace);
            }
            TaskState::Waiting | TaskState::Pending | TaskState::Retrying => {
                self.timers.cancel(Timer::TaskRetry(number));
                match purpose {
                    EndReason::Served => {
                        self.roles[self.tasks[number].role].queue.remove(&number);
                        self.succeeded(time, number);
                    }
                    EndReason::Restart | EndReason::Suspended => {}
                    EndReason::JobEnded | EndReason::Failed { .. } => {
                        self.set_state(number, TaskState::Stopped);
                    }
                }
            }
            TaskState::Succeeded | TaskState::Failed | TaskState::Stopped => {}
        }
    }

    /// Sends the stop signal, after Ctrl-C first SIGINT, or without a grace period SIGKILL.
    fn signal(&mut self, time: Duration, number: TaskNumber, grace: Duration) {
        self.timers.cancel(Timer::Attempt(number));
        self.leave_gang(number);
        self.set_state(number, TaskState::Stopping);
        if grace.is_zero() {
            self.actions.push(Action::Signal(number, EndSignal::Kill));
            return;
        }
        self.timers.set(Timer::Kill(number), time + grace);
        if self.interrupted && self.progress[number].ending == Some(EndReason::JobEnded) {
            self.actions.push(Action::Signal(number, EndSignal::Interrupt));
            self.timers.set(Timer::Stop(number), time + grace / 2);
        } else {
            self.actions.push(Action::Signal(number, EndSignal::Stop));
        }
    }

    /// Asks a task again that SIGINT did not end.
    pub(super) fn stop_interrupted(&mut self, number: TaskNumber) {
        if self.tasks[number].state == TaskState::Stopping {
            self.actions.push(Action::Signal(number, EndSignal::Stop));
        }
    }

    /// Kills a task after its grace period.
    pub(super) fn kill_task(&mut self, number: TaskNumber) {
        self.timers.cancel(Timer::Stop(number));
        self.timers.cancel(Timer::Kill(number));
        if self.tasks[number].state == TaskState::Stopping {
            self.actions.push(Action::Signal(number, EndSignal::Kill));
        }
    }
}

/// Sets the reason for ending a task. The first reason that determines the result stays; the end of the job takes
/// precedence over another attempt.
fn set_end_reason(set: &mut Option<EndReason>, purpose: EndReason) {
    let stays = matches!(
        (&*set, &purpose),
        (Some(EndReason::Failed { .. } | EndReason::Served), EndReason::JobEnded)
            | (Some(_), EndReason::Failed { .. } | EndReason::Suspended)
    );
    if !stays {
        *set = Some(purpose);
    }
}
