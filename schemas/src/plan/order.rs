//! The order in which the roles of a plan run.

mod peak;

use std::collections::VecDeque;

use super::JobPlan;
use crate::role::NeedState;

/// Which roles of a plan never run at the same time.
#[derive(Clone, Debug)]
pub struct RoleOrder {
    /// For each role, by its place in the plan: those that begin only after it has ended.
    pub after: Vec<Vec<usize>>,
}

impl RoleOrder {
    /// The order that the needs of the roles make.
    pub fn of(plan: &JobPlan) -> Self {
        let place = |name: &str| plan.roles.iter().position(|role| role.name == name);
        // Roles that begin no sooner than a role does, and those of them that begin only when it has ended.
        let (mut later, mut ended) = (vec![vec![]; plan.roles.len()], vec![vec![]; plan.roles.len()]);
        for (number, role) in plan.roles.iter().enumerate() {
            for need in &role.needs {
                let Some(other) = place(&need.role) else { continue };
                later[other].push(number);
                if need.state == NeedState::Succeeded && need.min >= plan.roles[other].instances {
                    ended[other].push(number);
                }
            }
        }
        let after = ended.iter().map(|first| {
            let mut seen = vec![false; plan.roles.len()];
            let mut open: VecDeque<usize> = first.iter().copied().collect();
            while let Some(role) = open.pop_front() {
                if !std::mem::replace(&mut seen[role], true) {
                    open.extend(&later[role]);
                }
            }
            (0..seen.len()).filter(|&role| seen[role]).collect()
        });
        Self { after: after.collect() }
    }

    /// Whether two roles, by their places in the plan, never run at the same time.
    pub fn never_together(&self, one: usize, other: usize) -> bool {
        self.after[one].contains(&other) || self.after[other].contains(&one)
    }
}
