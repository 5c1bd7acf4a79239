//! The end of each step: which roles can start, which tasks are created and started, and whether the job is over.

use std::time::Duration;

use jobc_schema::plan::GangPlan;

use super::action::Action;
use super::gang::Gang;
use super::role::Need;
use super::task::{EndReason, RoleNumber, TaskNumber};
use super::{Lifecycle, Phase};
use jobc_place::task::TaskState;

impl Lifecycle {
    /// Draws the conclusions of what has changed.
    pub(super) fn advance(&mut self, time: Duration) {
        self.restart_job();
        if matches!(self.phase, Phase::Running) {
            self.restart_roles();
            self.end_serving(time);
        }
        if matches!(self.phase, Phase::Running) {
            self.open_next_combinations();
            self.check_needs(time);
        }
        if matches!(self.phase, Phase::Running) {
            self.check_all_ended(time);
        }
        if matches!(self.phase, Phase::Running) && !self.clock.is_paused() {
            self.form_gang();
            self.start_created_tasks();
            self.create_tasks();
        }
        self.check_suspended();
        self.check_finished();
    }

    /// Opens the roles that need nothing.
    pub(super) fn open_independent_roles(&mut self) {
        for role in 0..self.roles.len() {
            if self.roles[role].needs.is_empty() {
                self.open_role(role);
            }
        }
        // `min: 0` is valid, although users do not write it.
        self.changed.extend(0..self.roles.len());
    }

    /// Lets the tasks of a role be made, or has it wait for its turn among the combinations of a matrix.
    pub(super) fn open_role(&mut self, number: RoleNumber) {
        if !self.admits(number) {
            return;
        }
        let role = &mut self.roles[number];
        role.open = true;
        role.queue =
            role.tasks.clone().filter(|task| self.tasks[*task].state == TaskState::Waiting).collect();
        self.opened.insert(number);
        self.roles_with_room.insert(number);
    }

    /// Checks the roles that need those that changed: some can start now, some never.
    fn check_needs(&mut self, time: Duration) {
        for changed in std::mem::take(&mut self.changed) {
            for index in 0..self.roles[changed].needed_by.len() {
                let number = self.roles[changed].needed_by[index];
                let role = &self.roles[number];
                if role.open {
                    continue;
                }
                let missing = |need: &&Need| self.roles[need.role].reached(need.state) < need.min;
                let hopeless = |need: &&Need| {
                    let other = &self.roles[need.role];
                    other.tasks.len() - other.missed(need.state) < need.min
                };
                if !role.needs.iter().any(|need| missing(&need)) {
                    self.open_role(number);
                } else if let Some(need) = role.needs.iter().find(hopeless).copied() {
                    return self.role_cannot_start(time, number, need);
                }
            }
        }
    }

    /// Puts the first tasks of the roles that started in this step into a gang.
    fn form_gang(&mut self) {
        let opened = std::mem::take(&mut self.opened);
        if self.gang == GangPlan::None {
            return;
        }
        let mut members: Vec<TaskNumber> = Vec::new();
        for number in opened {
            let role = &self.roles[number];
            let room = role.parallel.saturating_sub(role.counts.alive);
            members.extend(role.queue.iter().take(room).filter(|task| self.progress[**task].gang.is_none()));
        }
        if members.len() < 2 {
            return;
        }
        let needed = match self.gang {
            GangPlan::Min(min) => members.len().min(min as usize),
            _ => members.len(),
        };
        for &member in &members {
            self.progress[member].gang = Some(self.gangs.len());
            self.roles[self.tasks[member].role].gang = Some(self.gangs.len());
        }
        let possible = members.len();
        self.gangs.push(Gang { members, needed, created: 0, possible, open: false });
    }

    /// Creates tasks, up to the limit.
    fn create_tasks(&mut self) {
        for number in std::mem::take(&mut self.roles_with_room) {
            while self.roles[number].can_create_task() {
                let role = &mut self.roles[number];
                let Some(task) = role.queue.pop_first() else { break };
                // The room of a gang that is not complete is its members', also while one waits for another attempt.
                if role
                    .gang
                    .is_some_and(|gang| !self.gangs[gang].open && self.progress[task].gang != Some(gang))
                {
                    role.queue.insert(task);
                    break;
                }
                self.tasks[task].attempt += 1;
                self.set_state(task, TaskState::Creating);
                let sizes = &self.roles[number].retry.memory_bytes;
                let growths = self.progress[task].growths.min(sizes.len());
                let memory_bytes = growths.checked_sub(1).map(|last| sizes[last]);
                self.actions.push(Action::Create { task, attempt: self.tasks[task].attempt, memory_bytes });
            }
        }
    }

    /// Starts the gangs that are complete, and the tasks that have nothing to wait for.
    fn start_created_tasks(&mut self) {
        for number in std::mem::take(&mut self.complete) {
            let gang = &mut self.gangs[number];
            if !gang.open && gang.created >= gang.needed {
                gang.open = true;
                self.roles_with_room.extend(gang.members.iter().map(|task| self.tasks[*task].role));
                self.startable.append(&mut gang.members);
            }
        }
        for task in std::mem::take(&mut self.startable) {
            let progress = &mut self.progress[task];
            if self.tasks[task].state == TaskState::Created
                && progress.ending.is_none()
                && !progress.start_requested
            {
                progress.start_requested = true;
                self.actions.push(Action::Start(task));
            }
        }
    }

    /// Ends those that serve once those that launch have ended: that is a success.
    fn end_serving(&mut self, time: Duration) {
        if !self.serving || self.launching > 0 {
            return;
        }
        self.serving = false;
        for task in 0..self.tasks.len() {
            if self.progress[task].serves && !self.tasks[task].state.is_final() {
                self.end_task(time, task, EndReason::Served, None);
            }
        }
    }
}
