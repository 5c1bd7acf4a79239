//! The reaction to a failure: another attempt of the task, of its role, of the job, or none.

use std::time::Duration;

use jobc_schema::failure::Failure;
use jobc_schema::role::RetryScope;

use super::action::Action;
use super::combinations::Combinations;
use super::task::{EndReason, RoleNumber, TaskNumber};
use super::timers::Timer;
use super::{Lifecycle, Phase, format};
use jobc_place::task::TaskState;

/// The first wait where the plan has none.
const INITIAL_BACKOFF: Duration = Duration::from_secs(1);

/// The maximum backoff, as for the pods of a Kubernetes Job, unless the first wait is longer.
const MAX_BACKOFF: Duration = Duration::from_mins(6);

/// The wait before another attempt: the plan's before the second, and each time twice the last one.
pub(super) fn backoff_delay(first: Option<u64>, retries: u32) -> Duration {
    let first = first.map_or(INITIAL_BACKOFF, Duration::from_secs);
    let factor = 2_u32.saturating_pow(retries.saturating_sub(1));
    first.saturating_mul(factor).min(MAX_BACKOFF.max(first))
}

impl Lifecycle {
    /// An attempt failed, with a code as the exit codes of `retry` see it.
    pub(super) fn failed(&mut self, time: Duration, number: TaskNumber, code: u8, unstarted: bool) {
        if matches!(self.phase, Phase::Suspended { .. }) {
            return self.suspended(number);
        }
        let role = self.tasks[number].role;
        let retry = &self.roles[role].retry;
        // A command that did not run uses up no retry; what another node cannot repair is not tried again.
        let is_unfit = std::mem::take(&mut self.progress[number].is_unfit);
        let retries = match retry.scope {
            _ if is_unfit => self.progress[number].unfit_retries,
            RetryScope::Task => self.progress[number].retries,
            RetryScope::Role => self.roles[role].retries,
            RetryScope::Job => self.attempt - 1 - self.resumes,
        };
        let kind = self.tasks[number].verdict.as_ref().and_then(|verdict| verdict.kind.failure());
        // `stall: {action: restart}` retries what no list of `retry` names.
        let is_restarted = kind == Some(Failure::Stall) && self.roles[role].restarts_stalls;
        let is_covered = is_restarted || retry.covers(code, kind);
        let is_final = self.progress[number].is_final || is_unfit && kind == Some(Failure::UserError);
        if !matches!(self.phase, Phase::Running) || is_final || !is_covered || retries >= retry.max {
            return self.failed_for_good(time, number, unstarted);
        }
        let backoff = backoff_delay(retry.backoff_seconds, retries + 1);
        if std::mem::take(&mut self.progress[number].ran_out) {
            // Instances of a role that is retried as a whole need the same.
            let scope = retry.scope;
            let tasks =
                if scope == RetryScope::Task { number..number + 1 } else { self.roles[role].tasks.clone() };
            tasks.for_each(|task| self.progress[task].growths += 1);
        }
        self.progress[number].unfit_retries += u32::from(is_unfit);
        self.try_again(time, number, backoff, !is_unfit);
    }

    /// Another attempt of the task, of its role or of the job comes; it counts as a retry unless it resumes.
    pub(super) fn try_again(&mut self, time: Duration, number: TaskNumber, backoff: Duration, counts: bool) {
        let role = self.tasks[number].role;
        let scope = self.roles[role].retry.scope;
        self.set_state(number, TaskState::Retrying);
        let attempt = match scope {
            RetryScope::Task => self.tasks[number].attempt + 1,
            RetryScope::Role => self.roles[role].retries + self.roles[role].resumes + 2,
            RetryScope::Job => self.attempt + 1,
        };
        let why = format::attempt_end(&self.tasks[number]);
        self.actions.push(Action::Retried { scope, task: number, attempt, backoff, why });
        match scope {
            RetryScope::Task => {
                self.progress[number].retries += u32::from(counts);
                self.forget_attempt(number);
                self.timers.set(Timer::TaskRetry(number), time + backoff);
            }
            RetryScope::Role => {
                self.end_role(time, role);
                *if counts { &mut self.roles[role].retries } else { &mut self.roles[role].resumes } += 1;
                self.roles[role].due = false;
                self.restarting.insert(role);
                self.timers.set(Timer::RoleRetry(role), time + backoff);
            }
            RetryScope::Job => {
                self.resumes += u32::from(!counts);
                for role in 0..self.roles.len() {
                    self.end_role(time, role);
                }
                self.restarting.clear();
                self.phase = Phase::Restarting { due: false };
                self.timers.retain(|timer| matches!(timer, Timer::Stop(_) | Timer::Kill(_) | Timer::Job));
                self.timers.set(Timer::JobRetry, time + backoff);
            }
        }
    }

    /// A task's wait is over.
    pub(super) fn requeue_task(&mut self, number: TaskNumber) {
        let role = self.tasks[number].role;
        if self.tasks[number].state == TaskState::Retrying {
            self.set_state(number, TaskState::Waiting);
            self.roles[role].queue.insert(number);
            self.roles_with_room.insert(role);
        }
    }

    /// Ends all running tasks of a role, to start again from the beginning.
    fn end_role(&mut self, time: Duration, number: RoleNumber) {
        self.roles[number].queue.clear();
        for task in self.roles[number].tasks.clone() {
            if self.tasks[task].state.is_final() {
                self.set_state(task, TaskState::Retrying);
                if let Some(gang) = self.progress[task].gang.map(|gang| &mut self.gangs[gang]) {
                    gang.possible += usize::from(!gang.open);
                }
            } else {
                self.end_task(time, task, EndReason::Restart, None);
            }
        }
    }

    /// Begins the next attempts of roles of which nothing is left, when their wait is over.
    pub(super) fn restart_roles(&mut self) {
        let ready = |&role: &RoleNumber| self.roles[role].due && self.roles[role].counts.alive == 0;
        let ready: Vec<RoleNumber> = self.restarting.iter().copied().filter(ready).collect();
        for number in ready {
            self.restarting.remove(&number);
            for task in self.roles[number].tasks.clone() {
                // A serving role may be over: the roles that it served have ended meanwhile.
                if !self.tasks[task].state.is_final() {
                    self.reset_task(task);
                }
            }
            self.open_role(number);
        }
    }

    /// Begins the job's next attempt when nothing is left of the last one, and the wait is over.
    pub(super) fn restart_job(&mut self) {
        if self.alive > 0 || !matches!(self.phase, Phase::Restarting { due: true }) {
            return;
        }
        self.attempt += 1;
        self.phase = Phase::Running;
        for task in 0..self.tasks.len() {
            self.reset_task(task);
            self.progress[task].retries = 0;
            self.progress[task].gang = None;
        }
        for role in &mut self.roles {
            role.open = false;
            (role.retries, role.resumes) = (0, 0);
            role.gang = None;
        }
        self.serving = self.progress.iter().any(|progress| progress.serves);
        self.combinations.iter_mut().for_each(Combinations::reset);
        self.gangs.clear();
        self.complete.clear();
        self.startable.clear();
        self.opened.clear();
        self.open_independent_roles();
    }

    /// A task waits as if it had never run. It stays in a gang that was not let go yet.
    fn reset_task(&mut self, task: TaskNumber) {
        self.set_state(task, TaskState::Waiting);
        self.forget_attempt(task);
        let progress = &mut self.progress[task];
        progress.gang = progress.gang.filter(|gang| !self.gangs[*gang].open);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit() {
        let waits = |first| (1..=10).map(|n| backoff_delay(first, n).as_secs()).collect::<Vec<_>>();
        assert_eq!(waits(None), [1, 2, 4, 8, 16, 32, 64, 128, 256, 360]);
        assert_eq!(waits(Some(10)), [10, 20, 40, 80, 160, 320, 360, 360, 360, 360]);
        assert_eq!(waits(Some(0)), [0; 10]);
        assert_eq!(waits(Some(3600)), [3600; 10]);
        assert_eq!(backoff_delay(Some(1), u32::MAX), MAX_BACKOFF);
    }
}
