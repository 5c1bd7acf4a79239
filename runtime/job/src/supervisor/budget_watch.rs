//! How much of its budget a job has used, and how long until the next count.

use std::time::{Duration, Instant};

use jobc_schema::budget::Budget;
use jobc_schema::decimal::Decimal;

use crate::rates::Rates;
use crate::spent::Spent;

/// How often it is counted, at most and at least.
pub(super) const INTERVALS: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(10)];

/// How often where energy counts, which is sampled once a second.
const ENERGY_INTERVAL: Duration = Duration::from_secs(1);

/// Counts what a job uses.
#[derive(Debug)]
pub(super) struct BudgetWatch {
    pub(super) budget: Budget,
    pub(super) rates: Rates,
    /// What was used until the last count: without the energy of attempts that run, and of earlier starts too.
    pub(super) spent: Spent,
    pub(super) counted: Instant,
    pub(super) next: Instant,
    pub(super) began: Option<Instant>,
}

impl BudgetWatch {
    /// That of a job with a budget; `earlier` is what was used before.
    pub(super) fn new(budget: Option<Budget>, rates: Option<&Rates>, earlier: Spent) -> Option<Self> {
        let (budget, rates) = (budget?, rates?.clone());
        let now = Instant::now();
        Some(Self { budget, rates, spent: earlier, counted: now, next: now, began: None })
    }

    /// How long to wait until the next count, where `running` is what is used in a second; or the limit that is reached.
    pub(super) fn reached(&self, spent: &Spent, running: &Spent) -> Result<Duration, String> {
        let mut left = INTERVALS[1];
        let mut until = |limit: u64, used: u64, in_second: u64| {
            let seconds = limit.saturating_sub(used).checked_div(in_second);
            left = seconds.map_or(left, |seconds| left.min(Duration::from_secs(seconds)));
        };
        if let Some(limit) = self.budget.gpu_hours {
            // Millionths of an hour.
            let used = hours(spent.gpu_millis);
            if used >= limit.0 {
                // Less than an hour with all decimals.
                let used = Decimal(used);
                let text = if used.0 < 1_000_000 { used.to_string() } else { used.rounded() };
                return Err(format!("{text} of {limit} GPU-hours"));
            }
            until(limit.0, used, hours(running.gpu_millis).max(1));
        }
        if let Some(limit) = self.budget.cost {
            let used = spent.cost(&self.rates);
            let currency = self.rates.currency.as_deref().unwrap_or_default();
            if used >= limit.0 {
                return Err(format!("{} of {} {currency}", Decimal(used).rounded(), limit.rounded()));
            }
            until(limit.0, used, running.cost(&self.rates).max(1));
        }
        if let Some(limit) = self.budget.energy {
            let used = spent.energy.millijoules().unwrap_or(0);
            if used >= limit.0 {
                return Err(format!("{} of {}", spent.energy.text(), limit.rounded()));
            }
        }
        let counts_energy = self.budget.energy.is_some() || self.rates.kwh.is_some();
        let least = if counts_energy { ENERGY_INTERVAL } else { INTERVALS[1] };
        Ok(left.min(least).max(INTERVALS[0]))
    }
}

/// Milliseconds as millionths of an hour.
fn hours(millis: u64) -> u64 {
    u64::try_from(u128::from(millis) * 1_000_000 / 3_600_000).unwrap_or(u64::MAX)
}
