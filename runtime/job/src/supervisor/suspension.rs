//! `jobc suspend` and `jobc resume`: a job gives its resources back, and gets them again.

use super::{Supervisor, preparation};
use crate::lifecycle::Input;
use jobc_place::state::JobState;
use jobc_sys::error::{Error, Kind, Result};

impl Supervisor {
    /// Begins to suspend the job.
    pub(super) fn suspend(&mut self) -> Result<()> {
        let (id, state) = (&self.directory.id, self.lifecycle.state());
        if self.context.plan.preemption.is_none() && self.run.is_none() {
            let message = format!("job `{id}` does not say how its tasks are resumed");
            return Err(Error::new(Kind::State, message)
                .help("write `preemption` in the job file; `jobc pause` freezes its tasks instead"));
        }
        let waits = self.waits_for_turn();
        if state != JobState::Running && !waits || self.prepared.is_none() {
            return Err(Error::new(Kind::State, format!("job `{id}` is {}, not running", state.as_str())));
        }
        if waits {
            // It saves outside of its turn: what asks for its resources does not wait for that.
            self.set_frozen(false)?;
            self.leave_turns();
        }
        self.resume_wanted = false;
        self.step(Input::Suspend);
        if waits && self.lifecycle.state() != JobState::Suspended {
            self.wait_for_turn();
        }
        Ok(())
    }

    /// Nothing of the job runs: others may have its resources.
    pub(super) fn give_back(&mut self) {
        self.turns = None;
        if let Some(prepared) = &mut self.prepared
            && let Err(error) = prepared.admission.give_back()
        {
            self.journal.note(format!("the resources of the suspended job are not given back: {error}"));
        }
        if let Some(gpus) = self.context.gpus() {
            gpus.give_back();
        }
        if std::mem::take(&mut self.resume_wanted) {
            self.resume_suspended();
        }
    }

    /// Waits for resources, behind the jobs that have waited longer.
    pub(super) fn resume_suspended(&mut self) {
        let is_over = self.attempts.is_empty() && self.ending.is_empty() && self.lifecycle.is_suspended();
        if !is_over {
            self.resume_wanted = true;
        } else if let Some(prepared) = self.prepared.take() {
            let mail = self.mailbox.sender();
            self.preparation = Some(preparation::readmit(&self.context, prepared, &mail));
        }
    }
}
