//! What a plan uses at most: GPU-hours, and the cost by the prices of its target.

use super::order::RoleOrder;
use super::{GpuAmount, JobPlan, RolePlan};
use crate::decimal::Decimal;
use crate::role::RetryScope;

const HOUR: u64 = 3600;

/// A bound, or the rate at which something without one is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// What all roles that run at once use in an hour.
    pub hourly: u64,
    /// What the job uses at most, if its time is limited.
    pub most: Option<u64>,
}

impl JobPlan {
    /// GPU-seconds that the job holds, a part of a GPU counted as one. `None` without GPUs, and where their number is the
    /// host's.
    pub fn gpu_seconds(&self) -> Option<Estimate> {
        let gpus = |role: &RolePlan| role.fixed_gpus();
        let counts: Option<Vec<u64>> = self.roles.iter().map(gpus).collect();
        let counts = counts.filter(|counts| counts.iter().any(|count| *count > 0))?;
        Some(self.estimate(&counts.iter().map(|count| count * HOUR).collect::<Vec<_>>()))
    }

    /// The cost of the job in millionths of the target's currency, without that of energy. `None` without a price for
    /// something that it has.
    pub fn cost(&self) -> Option<Estimate> {
        let prices: Option<Vec<u64>> = self.roles.iter().map(|role| self.hourly_cost(role)).collect();
        Some(self.estimate(&prices?))
    }

    /// What an instance of a role costs in an hour, in millionths of the target's currency. Of several models that it may
    /// have, the dearest counts.
    pub fn hourly_cost(&self, role: &RolePlan) -> Option<u64> {
        let prices = self.target.settings.prices.as_ref()?;
        let of = |price: Option<Decimal>, amount: u64, unit: u64| {
            let micros = u128::from(price.unwrap_or_default().0) * u128::from(amount) / u128::from(unit);
            u64::try_from(micros).unwrap_or(u64::MAX)
        };
        let cpu = of(prices.cpu, role.resources.cpu_millis.unwrap_or(0), 1000);
        let memory = of(prices.memory, role.resources.memory_bytes.unwrap_or(0), 1 << 30);
        let count = role.fixed_gpus()?;
        let gpu = match &prices.gpu {
            Some(table) if count > 0 => {
                let of_model = |model: &str| table.of(Some(model));
                let price = self.models(role).map(of_model).collect::<Option<Vec<_>>>()?;
                of(Some(price.into_iter().max().or_else(|| table.of(None))?), count, 1)
            }
            _ => 0,
        };
        Some(cpu.saturating_add(memory).saturating_add(gpu))
    }

    /// The models that the GPUs of a role may be, by the role or by the target; empty if neither says.
    fn models<'a>(&'a self, role: &'a RolePlan) -> impl Iterator<Item = &'a str> {
        let own = role.gpus().map(|gpu| &gpu.models[..]).unwrap_or_default();
        let known = self.target.settings.gpus.as_ref().filter(|gpus| own.is_empty() && !gpus.found);
        let cards = known.and_then(|gpus| gpus.cards.as_deref()).unwrap_or_default();
        own.iter().map(String::as_str).chain(cards.iter().map(|card| card.model.as_str()))
    }

    /// Adds up what each instance of the roles uses in an hour.
    fn estimate(&self, hourly: &[u64]) -> Estimate {
        let at_once: Vec<u64> = self
            .roles
            .iter()
            .zip(hourly)
            .map(|(role, hourly)| hourly.saturating_mul(role.at_once().into()))
            .collect();
        let peak = RoleOrder::of(self).heaviest(&at_once);
        let of_job = self.timeout_seconds.filter(|_| !self.begins_again()).map(|time| in_time(peak, time));
        let of_role = |(role, hourly): (&RolePlan, &u64)| {
            if *hourly == 0 {
                return Some(0);
            }
            let attempts = u64::from(role.retry.max).saturating_add(1);
            let limited = role.timeout_seconds.filter(|_| self.preemption.is_none())?;
            Some(in_time(hourly.saturating_mul(role.instances.into()), limited.saturating_mul(attempts)))
        };
        let of_roles: Option<Vec<u64>> = self.roles.iter().zip(hourly).map(of_role).collect();
        let of_roles = of_roles.map(|all| all.into_iter().fold(0, u64::saturating_add));
        Estimate { hourly: peak, most: of_job.into_iter().chain(of_roles).min() }
    }

    /// Whether the time limit of the job begins again when the platform starts it again.
    fn begins_again(&self) -> bool {
        let is_restarted = |role: &RolePlan| role.retry.scope != RetryScope::Task && role.retry.max > 0;
        !self.target.settings.is_host() && (self.preemption.is_some() || self.roles.iter().any(is_restarted))
    }

    /// The time after which the job reaches its budget, if it uses as much at all times: for platforms on which nothing
    /// of jobc counts. `None` if it may use less at some time, or has no such budget.
    pub fn budget_seconds(&self) -> Option<u64> {
        let budget = self.budget.as_ref()?;
        let of = |limit: Option<u64>, estimate: Option<Estimate>| {
            let hourly = estimate?.hourly;
            let seconds = u128::from(limit?) * u128::from(HOUR) / u128::from(hourly.max(1));
            Some(u64::try_from(seconds).unwrap_or(u64::MAX).max(1))
        };
        if !self.uses_evenly() {
            return None;
        }
        let gpus =
            of(budget.gpu_hours.map(|hours| hours.0.saturating_mul(HOUR) / 1_000_000), self.gpu_seconds());
        let cost = of(budget.cost.map(|cost| cost.0), self.cost());
        gpus.into_iter().chain(cost).min()
    }

    /// Whether all roles that use something begin together, and none makes its instances wait.
    fn uses_evenly(&self) -> bool {
        let by_gpus = self.budget.is_some_and(|budget| budget.cost.is_none());
        let counted: Vec<&RolePlan> =
            self.roles.iter().filter(|role| !by_gpus || role.gpus().is_some()).collect();
        counted.iter().all(|role| role.parallel.is_none())
            && (counted.len() == 1 || counted.iter().all(|role| role.needs.is_empty()))
    }
}

impl RolePlan {
    /// The GPUs of an instance, a part of one counted as one; `None` where the host decides.
    pub fn fixed_gpus(&self) -> Option<u64> {
        let Some(gpu) = self.resources.gpu.as_ref() else { return Some(0) };
        if gpu.grow.is_some() {
            return None;
        }
        match gpu.amount() {
            GpuAmount::Hidden => Some(0),
            GpuAmount::Count(count) | GpuAmount::AllOf(count) => Some(count.into()),
            GpuAmount::All => None,
        }
    }
}

fn in_time(hourly: u64, seconds: u64) -> u64 {
    u64::try_from(u128::from(hourly) * u128::from(seconds) / u128::from(HOUR)).unwrap_or(u64::MAX)
}
