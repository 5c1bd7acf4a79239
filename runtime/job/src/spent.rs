//! What a job has used until now: GPU-hours, energy, and the cost by the prices of its target.

use jobc_place::energy::{EnergyTotal, EnergyUse};
use jobc_place::task::TaskStatus;
use jobc_place::time::Time;

use crate::rates::Rates;
use crate::record::Record;

/// What a job has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// GPUs times milliseconds.
    pub gpu_millis: u64,
    /// The cost in millionths, in milliseconds times hours: divided only once.
    hourly_millis: u128,
    /// The energy.
    pub energy: EnergyTotal,
}

impl Spent {
    /// What has been spent in millionths of the currency.
    pub fn cost(&self, rates: &Rates) -> u64 {
        let by_time = self.hourly_millis / 3_600_000;
        let energy = u128::from(self.energy.millijoules().unwrap_or(0));
        let by_energy = energy * u128::from(rates.kwh.unwrap_or(0)) / 3_600_000_000;
        u64::try_from(by_time + by_energy).unwrap_or(u64::MAX)
    }

    /// A task ran for so long.
    pub fn add_time(&mut self, rates: &Rates, task: &TaskStatus, millis: u64) {
        self.gpu_millis = self.gpu_millis.saturating_add(rates.gpus_of(task).saturating_mul(millis));
        let hourly = rates.hourly.get(&task.task.role).copied().unwrap_or(0);
        self.hourly_millis += u128::from(hourly) * u128::from(millis);
    }

    /// An attempt of a task used energy.
    pub fn add_energy(&mut self, task: &TaskStatus, used: Option<EnergyUse>) {
        self.energy.add(!task.gpus.is_empty(), used);
    }

    /// Adds what was used elsewhere.
    pub fn add(&mut self, other: &Self) {
        self.gpu_millis = self.gpu_millis.saturating_add(other.gpu_millis);
        self.hourly_millis += other.hourly_millis;
    }

    /// All attempts of a job, by its record; those that run count until `now`.
    pub fn of(record: &Record, rates: &Rates, now: Time) -> Self {
        let mut spent = Self::default();
        for task in &record.tasks {
            let last = task.started.map(|started| (started, task.ended, task.energy));
            let earlier = task.earlier.iter().filter_map(|one| Some((one.started?, one.ended, one.energy)));
            for (started, ended, energy) in earlier.chain(last) {
                let until = ended.or(record.ended).unwrap_or(now);
                let millis = u64::try_from(until.since(started).as_millis()).unwrap_or(u64::MAX);
                spent.add_time(rates, task, millis);
                spent.add_energy(task, energy);
            }
        }
        spent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jobc_place::task::{Attempt, TaskState};

    #[test]
    fn all_attempts_count() {
        let rates = Rates {
            gpus: [("w".to_owned(), 2)].into(),
            hourly: [("w".to_owned(), 5_000_000)].into(),
            currency: Some("EUR".to_owned()),
            kwh: Some(300_000),
        };
        let mut task = TaskStatus::new("w-0".parse().unwrap(), TaskState::Running, 2);
        task.gpus = vec!["GPU-1".to_owned(), "GPU-2".to_owned()];
        task.started = Some(Time::from_millis(7_200_000));
        let energy = Some(EnergyUse { gpu_millijoules: Some(3_600_000_000), ..EnergyUse::default() });
        task.earlier = vec![Attempt {
            attempt: 1,
            started: Some(Time::from_millis(0)),
            ended: Some(Time::from_millis(1_800_000)),
            exit_code: Some(85),
            signal: None,
            reason: None,
            verdict: None,
            energy,
        }];
        let mut record: Record = serde_json::from_value(serde_json::json!({
            "version": 1, "id": "train.1", "source": "/j/job.yaml", "target": "local", "owner": 0,
            "state": "running", "submitted": "1970-01-01T00:00:00Z", "attempt": 1, "network": "host",
            "claim": {"cpu_millis": 0, "memory_bytes": 0, "gpus": 0, "disk_bytes": 0}, "tasks": [],
        }))
        .unwrap();
        record.tasks = vec![task];
        let spent = Spent::of(&record, &rates, Time::from_millis(9_000_000));
        assert_eq!(spent.gpu_millis, 2 * 3_600_000);
        // An hour of the task, and a kilowatt-hour.
        assert_eq!(spent.cost(&rates), 5_000_000 + 300_000);
        assert!(spent.energy.incomplete, "that of the attempt that runs is in its samples");
        let mut scaled = rates.clone();
        scaled.multiply("w", 4);
        assert_eq!(Spent::of(&record, &scaled, Time::from_millis(9_000_000)).gpu_millis, 8 * 3_600_000);
    }
}
