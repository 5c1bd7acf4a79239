//! How a job ends: by its thresholds, by its tasks' ends, by its timeout, or by a user's request.

use std::time::Duration;

use jobc_schema::role::NeedState;

use super::action::Action;
use super::outcome::Outcome;
use super::role::Need;
use super::task::{EndReason, RoleNumber, TaskNumber};
use super::timers::Timer;
use super::{LEFT, Lifecycle, Phase, format};
use jobc_place::exit_code;
use jobc_place::job::End;
use jobc_place::state::JobState;
use jobc_place::task::TaskState;
use jobc_place::verdict::Verdict;

impl Lifecycle {
    /// A task succeeded.
    pub(super) fn succeeded(&mut self, time: Duration, number: TaskNumber) {
        self.set_state(number, TaskState::Succeeded);
        if let Some(number) = self.progress[number].gang.filter(|gang| !self.gangs[*gang].open) {
            // One that served and was never let go is not waited for.
            let gang = &mut self.gangs[number];
            gang.possible -= 1;
            gang.needed = gang.needed.min(gang.possible);
            self.complete.insert(number);
        }
        let role = &self.roles[self.tasks[number].role];
        if let Some(min) = role.completion.min_succeeded.filter(|min| role.counts.succeeded >= *min as usize)
        {
            let explanation = format::succeeded(role, min, &self.tasks[number]);
            self.end_job(time, Outcome::new(JobState::Succeeded, explanation, Some(number)), None);
        }
    }

    /// A task failed and is not retried.
    pub(super) fn failed_for_good(&mut self, time: Duration, number: TaskNumber, unstarted: bool) {
        self.set_state(number, TaskState::Failed);
        let task = &self.tasks[number];
        let role = &self.roles[task.role];
        let short = self.progress[number].gang.and_then(|gang| {
            let gang = Some(&mut self.gangs[gang]).filter(|gang| !gang.open)?;
            gang.possible -= 1;
            (gang.possible < gang.needed).then_some(gang.needed)
        });
        let reached = role.completion.min_failed.filter(|min| role.counts.failed >= *min as usize);
        let explanation = match (reached, short) {
            (Some(min), _) => format::failed(role, min, task),
            (None, Some(needed)) => {
                format!("failed: {needed} tasks cannot start together any more ({})", format::task(task))
            }
            (None, None) => return,
        };
        // A program that cannot be executed is the job's own fault, what else keeps it from starting is not.
        let outcome = match &task.reason {
            Some(why) if unstarted && task.exit.is_some_and(|exit| exit.code() == exit_code::NOT_STARTED) => {
                Outcome::could_not_start(format!("could not start: `{}`: {why}", task.id), Some(number))
            }
            _ => Outcome::new(JobState::Failed, explanation, Some(number)),
        };
        self.end_job(time, outcome, None);
    }

    /// A role's needs can no longer be met, so the job can never run completely.
    pub(super) fn role_cannot_start(&mut self, time: Duration, number: RoleNumber, need: Need) {
        let other = &self.roles[need.role];
        let misses = |&task: &TaskNumber| match need.state {
            NeedState::Succeeded => self.tasks[task].state == TaskState::Failed,
            NeedState::Started => self.tasks[task].state.is_final() && !self.progress[task].started,
            NeedState::Ready => self.tasks[task].state.is_final() && !self.progress[task].ready,
        };
        let missed = other.tasks.clone().find(misses);
        let explanation = format!(
            "failed: `{}` can never start: {}{}",
            self.roles[number].name,
            format::need(&other.name, other.tasks.len(), need, other.missed(need.state)),
            missed.map(|task| format!(" ({})", format::task(&self.tasks[task]))).unwrap_or_default()
        );
        self.end_job(time, Outcome::new(JobState::Failed, explanation, missed), None);
    }

    /// Whether every task has ended.
    pub(super) fn check_all_ended(&mut self, time: Duration) {
        if self.ended == self.tasks.len() {
            let failed = self.roles.iter().map(|role| role.counts.failed).sum();
            let explanation = format::all_ended(self.tasks.len(), failed);
            self.end_job(time, Outcome::new(JobState::Succeeded, explanation, None), None);
        }
    }

    /// The job's time is up.
    pub(super) fn timed_out(&mut self, time: Duration) {
        let timeout = format::duration(self.timeout.unwrap_or_default());
        let explanation = format!("timed out after {timeout}: {}", format::still_running(self.running()));
        let next = "raise `timeout` of the job, or save checkpoints and continue from them";
        let outcome = Outcome::new(JobState::TimedOut, explanation, None).judged(Verdict::Timeout, next);
        self.end_job(time, outcome, None);
    }

    /// The job's budget is used up.
    pub(super) fn over_budget(&mut self, time: Duration, why: &str) {
        let explanation = format!("its budget is used up, {why}: {}", format::still_running(self.running()));
        let next = "raise `budget`, and continue from the checkpoints with `jobc run --retry-of`";
        let outcome = Outcome::new(JobState::TimedOut, explanation, None).judged(Verdict::Timeout, next);
        self.end_job(time, outcome, None);
    }

    /// A task asks to be resumed, and the job leaves for it.
    pub(super) fn leave(&mut self, time: Duration, number: TaskNumber) {
        self.set_state(number, TaskState::Stopped);
        let explanation = format!("stopped: `{}` asks to be resumed", self.tasks[number].id);
        let outcome = Outcome::new(JobState::Stopped, explanation, Some(number));
        self.end_job(time, Outcome { exit_code: LEFT, ..outcome }, None);
    }

    /// A request to stop the job.
    pub(super) fn stop(&mut self, time: Duration, grace: Option<Duration>, why: &str) {
        if !matches!(self.phase, Phase::Ending(_)) {
            let explanation = format!("{why}: {}", format::still_running(self.running()));
            self.end_job(time, Outcome::new(JobState::Stopped, explanation, None), grace);
        } else if grace.is_some() {
            self.end_tasks(time, grace);
        }
    }

    /// Ctrl-C in the foreground.
    pub(super) fn interrupt(&mut self, time: Duration, why: &str) {
        self.interrupted |= !matches!(self.phase, Phase::Ending(_));
        self.stop(time, None, why);
    }

    /// A request to kill the job.
    pub(super) fn kill(&mut self, time: Duration, why: &str) {
        self.stop(time, Some(Duration::ZERO), why);
    }

    /// The job cannot go on.
    pub(super) fn broken(&mut self, time: Duration, why: &str) {
        let what = if self.ran { "could not go on" } else { "could not start" };
        let outcome = Outcome::could_not_start(format!("{what}: {why}"), None);
        let next = "`jobc doctor` checks what this host can do";
        self.end_job(time, outcome.judged(Verdict::Infrastructure, next), None);
    }

    /// How many programs run, or were let go a moment ago: their starts are seen one after the other.
    fn running(&self) -> usize {
        self.tasks
            .iter()
            .zip(&self.progress)
            .filter(|(task, progress)| task.state.is_alive() && progress.start_requested)
            .count()
    }

    /// Ends the job; the first reason counts.
    fn end_job(&mut self, time: Duration, outcome: Outcome, grace: Option<Duration>) {
        if matches!(self.phase, Phase::Ending(_)) {
            return;
        }
        if self.alive > 0 {
            self.actions.push(Action::Stopping { why: outcome.explanation.clone() });
        }
        self.deciding_task = outcome.task;
        self.phase = Phase::Ending(outcome);
        self.clock.resume();
        self.timers.retain(|timer| matches!(timer, Timer::Stop(_) | Timer::Kill(_)));
        self.end_tasks(time, grace);
    }

    /// Ends every task, with the grace period of its role unless one is given.
    fn end_tasks(&mut self, time: Duration, grace: Option<Duration>) {
        for task in 0..self.tasks.len() {
            self.end_task(time, task, EndReason::JobEnded, grace);
        }
    }

    /// Whether nothing is left of a job that is over.
    pub(super) fn check_finished(&mut self) {
        if self.alive > 0 {
            return;
        }
        if let Phase::Ending(outcome) = &self.phase {
            let Outcome { state, exit_code, explanation, task, verdict } = outcome;
            let end = End {
                explanation: explanation.clone(),
                exit_code: *exit_code,
                task: task.map(|task| self.tasks[task].id.clone()),
                verdict: verdict.clone().or_else(|| {
                    let failed = matches!(state, JobState::Failed | JobState::TimedOut);
                    task.filter(|_| failed).and_then(|task| self.tasks[task].verdict.clone())
                }),
            };
            let state = *state;
            self.actions.push(Action::End(state, end));
            self.phase = Phase::Finished(state);
        }
    }
}
