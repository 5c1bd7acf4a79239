//! The order in which the roles of a plan run.

mod peak;

use std::collections::{BTreeMap, BTreeSet};

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
        let places: BTreeMap<&str, usize> =
            plan.roles.iter().enumerate().map(|(number, role)| (role.name.as_str(), number)).collect();
        // Roles that begin no sooner than a role does, and those of them that begin only when it has ended.
        let (mut later, mut ended) = (vec![vec![]; plan.roles.len()], vec![vec![]; plan.roles.len()]);
        for (number, role) in plan.roles.iter().enumerate() {
            for need in &role.needs {
                let Some(&other) = places.get(need.role.as_str()) else { continue };
                later[other].push(number);
                if need.state == NeedState::Succeeded && need.min >= plan.roles[other].instances {
                    ended[other].push(number);
                }
            }
        }
        let after = ended.iter().map(|first| {
            let mut seen = BTreeSet::new();
            let mut open = first.clone();
            while let Some(role) = open.pop() {
                if seen.insert(role) {
                    open.extend(&later[role]);
                }
            }
            seen.into_iter().collect()
        });
        Self { after: after.collect() }
    }

    /// Whether two roles, by their places in the plan, never run at the same time.
    pub fn never_together(&self, one: usize, other: usize) -> bool {
        self.after[one].contains(&other) || self.after[other].contains(&one)
    }
}
