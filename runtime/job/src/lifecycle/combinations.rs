//! The combinations of a role's matrix, with a limit on how many run at once.

use std::collections::BTreeSet;

use jobc_schema::plan::JobPlan;

use super::Lifecycle;
use super::task::RoleNumber;

/// The combinations of one role.
#[derive(Debug)]
pub(super) struct Combinations {
    /// How many may run at once.
    max: usize,
    /// Those that may have tasks.
    running: BTreeSet<RoleNumber>,
    /// Those whose needs are met, and that wait for their turn; the first in the file is the next.
    waiting: BTreeSet<RoleNumber>,
}

/// The roles of a plan that have a limit, and for each role its place among them.
pub(super) fn of_plan(plan: &JobPlan) -> (Vec<Combinations>, Vec<Option<usize>>) {
    let mut names: Vec<&str> = Vec::new();
    let mut all = Vec::new();
    let mut of_role = Vec::with_capacity(plan.roles.len());
    for role in &plan.roles {
        let limit = role.matrix.as_ref().and_then(|matrix| matrix.max_parallel);
        of_role.push(limit.map(|max| {
            // The combinations of a role follow each other.
            if names.last() != Some(&role.declared()) {
                names.push(role.declared());
                let max = max.max(1) as usize;
                all.push(Combinations { max, running: BTreeSet::new(), waiting: BTreeSet::new() });
            }
            names.len() - 1
        }));
    }
    (all, of_role)
}

impl Combinations {
    /// Whether a combination may have tasks now; if not, it waits for its turn.
    fn admit(&mut self, number: RoleNumber) -> bool {
        if self.running.len() < self.max || self.running.contains(&number) {
            self.waiting.remove(&number);
            self.running.insert(number);
            return true;
        }
        self.waiting.insert(number);
        false
    }

    /// Forgets all: the job is tried again.
    pub(super) fn reset(&mut self) {
        self.running.clear();
        self.waiting.clear();
    }
}

impl Lifecycle {
    /// Whether a role may have tasks now; if not, it is opened when its turn comes.
    pub(super) fn admits(&mut self, number: RoleNumber) -> bool {
        self.roles[number].combinations.is_none_or(|place| self.combinations[place].admit(number))
    }

    /// Opens the next combinations where others are over.
    pub(super) fn open_next_combinations(&mut self) {
        let is_over = |number: &RoleNumber| {
            let role = &self.roles[*number];
            role.combinations.is_some()
                && role.counts.ended == role.tasks.len()
                && !self.restarting.contains(number)
        };
        let over: Vec<RoleNumber> = self.changed.iter().copied().filter(is_over).collect();
        for number in over {
            let Some(place) = self.roles[number].combinations else { continue };
            let combinations = &mut self.combinations[place];
            if combinations.running.remove(&number)
                && let Some(next) = combinations.waiting.pop_first()
            {
                self.open_role(next);
            }
        }
    }
}
