//! The order in which the roles of a plan run.

mod peak;

use std::collections::{BTreeMap, BTreeSet};

use super::JobPlan;
use crate::role::NeedState;

/// Which roles of a plan never run at the same time.
#[derive(Clone, Debug)]
pub struct RoleOrder {
    /// For each role, by its place in the plan: those that begin no sooner than it does because they need it.
    later: Vec<Vec<usize>>,
    /// Those of them that begin only when it has ended.
    ended: Vec<Vec<usize>>,
}

impl RoleOrder {
    /// The order that the needs of the roles make.
    pub fn of(plan: &JobPlan) -> Self {
        let places: BTreeMap<&str, usize> =
            plan.roles.iter().enumerate().map(|(number, role)| (role.name.as_str(), number)).collect();
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
        Self { later, ended }
    }

    /// The roles that begin only after a role has ended, also those that wait for them; all by their places in the plan.
    pub fn after(&self, role: usize) -> BTreeSet<usize> {
        let mut seen = BTreeSet::new();
        let mut open = self.ended[role].clone();
        while let Some(role) = open.pop() {
            if seen.insert(role) {
                open.extend(&self.later[role]);
            }
        }
        seen
    }
}
