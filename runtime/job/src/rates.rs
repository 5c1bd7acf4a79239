//! What the tasks of a job use in a time and cost, by its plan and the prices of its target.

use std::collections::BTreeMap;

use jobc_place::task::TaskStatus;
use jobc_schema::plan::JobPlan;
use serde::{Deserialize, Serialize};

/// What a task uses while it runs, by role, and what that costs: as the plan has it, in millionths of the currency.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rates {
    /// GPUs of a task, where the plan has their number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub gpus: BTreeMap<String, u64>,
    /// What a task costs in an hour.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hourly: BTreeMap<String, u64>,
    /// The currency, if the target has prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// The price of a kilowatt-hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kwh: Option<u64>,
}

impl Rates {
    /// Those of a plan; nothing for a job without a budget at a target without prices.
    pub fn of(plan: &JobPlan) -> Option<Self> {
        let prices = plan.target.settings.prices.as_ref();
        if plan.budget.is_none() && prices.is_none() {
            return None;
        }
        let gpus = plan.roles.iter().filter_map(|role| Some((role.name.clone(), role.fixed_gpus()?)));
        let hourly = plan.roles.iter().filter_map(|role| Some((role.name.clone(), plan.hourly_cost(role)?)));
        Some(Self {
            gpus: gpus.collect(),
            hourly: hourly.collect(),
            currency: prices.map(|prices| prices.currency.clone()),
            kwh: prices.and_then(|prices| prices.energy).map(|price| price.0),
        })
    }

    /// The tasks of a role stand for so many instances of the plan.
    pub fn multiply(&mut self, role: &str, instances: u64) {
        for rates in [&mut self.gpus, &mut self.hourly] {
            if let Some(rate) = rates.get_mut(role) {
                *rate = rate.saturating_mul(instances);
            }
        }
    }

    /// The GPUs of a task.
    pub fn gpus_of(&self, task: &TaskStatus) -> u64 {
        self.gpus.get(&task.task.role).copied().unwrap_or(task.gpus.len() as u64)
    }
}
