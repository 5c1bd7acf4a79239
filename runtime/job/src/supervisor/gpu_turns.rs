//! `share: {time: true}`: the job runs in its turns on its GPUs, and is frozen in those of other jobs; and
//! `share: {grow: 4}`: it gives GPUs back that another job waits for.

use std::time::{Duration, Instant};

use serde_json::json;

use super::poll::EventSource;
use super::{Supervisor, with_help};
use crate::admission::ledger::turns::{TurnChange, Turns};
use crate::event::Kind as EventKind;
use crate::lifecycle::Input;
use jobc_place::state::JobState;
use jobc_sys::error::{Error, Kind, Result};

/// How often it is looked whether another job waits for GPUs that this one can give back.
const GROWTH_INTERVAL: Duration = Duration::from_secs(1);

impl Supervisor {
    /// Whether the job is frozen until its turn.
    pub(super) fn waits_for_turn(&self) -> bool {
        self.turns.as_ref().is_some_and(Turns::is_waiting)
    }

    /// Waits for the first turn of a job that has its resources.
    pub(super) fn enter_turns(&mut self) {
        let Some(prepared) = &self.prepared else { return };
        self.turns = prepared.admission.turns(&self.directory.id);
        if let Some(changes) = self.turns.as_ref().and_then(Turns::changes) {
            // Without it, the turn is looked at from time to time.
            let _ = self.poll.add(changes, EventSource::Turn);
        }
        self.wait_for_turn();
    }

    /// Queues up, and goes on at once where no other job has the GPUs.
    pub(super) fn wait_for_turn(&mut self) {
        let Some(turns) = &mut self.turns else { return };
        let (cards, is_first) = (turns.cards(), self.journal.record.started.is_none());
        let change = match turns.wait().and_then(|()| turns.look()) {
            Ok(change) => change,
            Err(error) => return self.step(Input::Broken { why: with_help(&error) }),
        };
        if change == Some(TurnChange::Begins) {
            return self.begin_turn();
        }
        if let Err(error) = self.set_frozen(true) {
            return self.step(Input::Broken { why: with_help(&error) });
        }
        let mut detail = json!({ "waits_for": format!("its turn on {cards}") });
        if is_first {
            detail["first"] = json!(true);
        }
        self.journal.job_event(EventKind::Paused, detail);
        self.step(Input::Paused);
    }

    /// Gives GPUs back that another job waits for: the tasks leave, and are resumed with what is left.
    pub(super) fn look_at_growth(&mut self) {
        let grows = self.prepared.as_ref().is_some_and(|prepared| prepared.admission.is_grown());
        let now = Instant::now();
        if !grows || self.lifecycle.state() != JobState::Running {
            self.next_growth = None;
            return;
        }
        if self.next_growth.is_some_and(|due| now < due) {
            return;
        }
        self.next_growth = Some(now + GROWTH_INTERVAL);
        let wanted = self.prepared.as_ref().and_then(|prepared| prepared.admission.wanted_by());
        let Some(other) = wanted else { return };
        match self.suspend() {
            Ok(()) => {
                self.journal.note(format!("gave GPUs back that {other} waits for, by `grow`"));
                self.resume_wanted = true;
            }
            Err(error) => self.journal.note(format!("{other} waits for GPUs: {}", with_help(&error))),
        }
    }

    /// Leaves the GPUs to other jobs.
    pub(super) fn leave_turns(&mut self) {
        if let Some(turns) = &mut self.turns {
            turns.leave();
        }
    }

    /// Begins or ends the turn, if it is time.
    pub(super) fn look_at_turns(&mut self) {
        let Some(turns) = &mut self.turns else { return };
        match self.lifecycle.state() {
            // It ends, or leaves: it was thawed for that, and keeps the turn if it has it.
            JobState::Stopping | JobState::Suspended if turns.is_waiting() => turns.leave(),
            JobState::Stopping | JobState::Suspended => {}
            _ => match turns.look() {
                Ok(Some(TurnChange::Begins)) => self.begin_turn(),
                Ok(Some(TurnChange::Ends)) => self.end_turn(),
                Ok(None) => {}
                Err(error) => self.step(Input::Broken { why: with_help(&error) }),
            },
        }
    }

    fn begin_turn(&mut self) {
        self.skip_time();
        if let Err(error) = self.set_frozen(false) {
            return self.step(Input::Broken { why: with_help(&error) });
        }
        if self.lifecycle.state() != JobState::Paused {
            return;
        }
        let cards = self.turns.as_ref().map(Turns::cards);
        self.journal.job_event(EventKind::Resumed, json!({ "turn": cards }));
        self.step(Input::Resumed);
    }

    fn end_turn(&mut self) {
        self.count_time();
        // Before the GPUs are given up: where the job does not freeze, it keeps them.
        match self.set_frozen(true) {
            Ok(()) => self.wait_for_turn(),
            Err(error) => {
                if let Some(turns) = &mut self.turns {
                    turns.extend();
                }
                self.journal.note(format!("another job waits for its turn: {}", with_help(&error)));
            }
        }
    }

    /// `jobc pause` and `jobc resume` of a job that is frozen.
    pub(super) fn hold_between_turns(&mut self, frozen: bool) -> Result<()> {
        let (id, waits) = (&self.directory.id, self.waits_for_turn());
        match (frozen, waits) {
            // From now on it waits for its user.
            (true, true) => {
                self.leave_turns();
                self.journal.job_event(EventKind::Paused, json!({}));
            }
            (true, false) => {
                return Err(Error::new(Kind::State, format!("job `{id}` is paused, not running")));
            }
            (false, true) => {
                let message = format!("job `{id}` waits for its turn on its GPUs");
                return Err(Error::new(Kind::State, message)
                    .help(format!("it goes on by itself; `jobc why {id}` says which job has them")));
            }
            (false, false) => self.wait_for_turn(),
        }
        Ok(())
    }
}

/// Why a task cannot take turns.
pub(super) fn cannot_freeze() -> Error {
    Error::new(
        Kind::Unenforceable,
        "the task has no cgroup that can be frozen, and its job takes turns on GPUs",
    )
    .help("`jobc doctor` shows how to get cgroups as an unprivileged user; or leave `time` out of `share`")
}
