//! What a job used of what it asked for, by its record and its samples.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use jobc_place::energy::EnergyUse;
use jobc_place::output::history::{Cost, JobUsage, RoleUsage, TaskLimits, Used};
use jobc_place::task::TaskStatus;
use jobc_place::time::Time;
use jobc_schema::Decimal;
use jobc_sys::id::TaskId;

use crate::directory::Directory;
use crate::metrics::{self, Sample};
use crate::record::Record;
use crate::spent::Spent;

/// The shortest time between two samples that a peak of CPU time is computed from: the last sample of an attempt may come
/// a few milliseconds after another one.
const MIN_PEAK_MS: u128 = 500;

/// What a job used until `now`.
pub fn usage(directory: &Directory, record: &Record, now: Time) -> JobUsage {
    of_samples(record, &metrics::read(directory), now)
}

/// What the samples of one attempt say.
#[derive(Debug, Default)]
struct AttemptUsage<'a> {
    last: Option<&'a Sample>,
    cpu_peak: Option<u64>,
    memory_peak: Option<u64>,
    oom_kills: u64,
    gpu_percent: Vec<u64>,
    gpu_memory_peak: Option<u64>,
}

impl<'a> AttemptUsage<'a> {
    fn add(&mut self, sample: &'a Sample, started: Option<Time>) {
        let memory = sample.usage.memory_peak.max(sample.usage.memory);
        self.memory_peak = self.memory_peak.max(memory);
        self.oom_kills = self.oom_kills.max(sample.usage.oom_kills.unwrap_or_default());
        for gpu in &sample.gpu {
            self.gpu_memory_peak = self.gpu_memory_peak.max(gpu.memory);
            self.gpu_percent.extend(gpu.utilization.map(u64::from));
        }
        let rate = match self.last {
            Some(last) if sample.time.since(last.time).as_millis() < MIN_PEAK_MS => return,
            Some(last) => sample.cpu_millis_since(last),
            // All CPU time since the start.
            None => mean(sample, started.filter(|at| sample.time.since(*at).as_millis() >= MIN_PEAK_MS)),
        };
        self.cpu_peak = self.cpu_peak.max(rate);
        self.last = Some(sample);
    }
}

/// The mean CPU use of an attempt until a sample.
fn mean(sample: &Sample, started: Option<Time>) -> Option<u64> {
    let micros = u64::try_from(sample.time.since(started?).as_micros()).ok()?;
    sample.usage.cpu_usec?.saturating_mul(1000).checked_div(micros)
}

fn of_samples(record: &Record, samples: &[Sample], now: Time) -> JobUsage {
    let mut measured: BTreeMap<(&TaskId, u32), Vec<&Sample>> = BTreeMap::new();
    for sample in samples {
        measured.entry((&sample.task, sample.attempt)).or_default().push(sample);
    }
    let mut roles: IndexMap<&str, (RoleUsage, Vec<u64>)> = IndexMap::new();
    let mut job = JobUsage::default();
    let (mut gpu_millis, mut cpu_usec) = (0_u128, 0_u64);
    for task in &record.tasks {
        let role = record.combinations.get(&task.task.role).map_or(&task.task.role, |known| &known.role);
        let (usage, gpu_percent) = roles
            .entry(role)
            .or_insert_with(|| (RoleUsage { role: role.clone(), ..RoleUsage::default() }, vec![]));
        usage.tasks += 1;
        let limit = |name: &str| task.limits.get(name).copied();
        usage.asked = TaskLimits {
            cpu_millis: usage.asked.cpu_millis.max(limit("cpu_millis")),
            memory_bytes: usage.asked.memory_bytes.max(limit("memory_bytes")),
            gpus: usage.asked.gpus.max(task.gpus.len() as u64),
        };
        for (number, started, ended, kept) in attempts(task) {
            usage.attempts += 1;
            let until = ended.or(record.ended).unwrap_or(now);
            gpu_millis += task.gpus.len() as u128 * until.since(started).as_millis();
            let mut attempt = AttemptUsage::default();
            let mut last_usec = 0;
            let mut last_mean = None;
            let mut energy = kept;
            for sample in measured.get(&(&task.task, number)).into_iter().flatten() {
                attempt.add(sample, Some(started));
                energy = sample.energy.or(energy);
                last_usec = sample.usage.cpu_usec.unwrap_or(last_usec);
                last_mean = mean(sample, Some(started)).or(last_mean);
            }
            cpu_usec = cpu_usec.saturating_add(last_usec);
            job.energy.add(!task.gpus.is_empty(), kept.or(energy));
            let used = &mut usage.used;
            *used = Used {
                cpu_millis_peak: used.cpu_millis_peak.max(attempt.cpu_peak),
                cpu_millis_mean: used.cpu_millis_mean.max(last_mean),
                memory_peak_bytes: used.memory_peak_bytes.max(attempt.memory_peak),
                gpu_percent_mean: None,
                gpu_memory_peak_bytes: used.gpu_memory_peak_bytes.max(attempt.gpu_memory_peak),
                oom_kills: used.oom_kills.saturating_add(attempt.oom_kills),
            };
            gpu_percent.extend(attempt.gpu_percent);
        }
    }
    if let Some(rates) = &record.rates
        && let Some(currency) = &rates.currency
    {
        let mut spent = Spent::of(record, rates, now);
        // Also that of attempts that run.
        spent.energy = job.energy;
        job.cost = Some(Cost { amount: Decimal(spent.cost(rates)), currency: currency.clone() });
    }
    job.gpu_seconds = u64::try_from(gpu_millis / 1000).unwrap_or(u64::MAX);
    job.cpu_seconds = cpu_usec / 1_000_000;
    job.roles = roles
        .into_values()
        .map(|(mut usage, percent)| {
            usage.used.gpu_percent_mean = percent.iter().sum::<u64>().checked_div(percent.len() as u64);
            usage
        })
        .collect();
    job
}

/// The number, start, end and energy of each attempt that was started.
fn attempts(task: &TaskStatus) -> impl Iterator<Item = (u32, Time, Option<Time>, Option<EnergyUse>)> {
    let earlier = task
        .earlier
        .iter()
        .filter_map(|one| Some((one.attempt, one.started?, one.ended.or(one.started), one.energy)));
    earlier.chain(task.started.map(|started| (task.attempt, started, task.ended, task.energy)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use jobc_container::cgroup::Usage;
    use jobc_place::state::JobState;
    use jobc_place::task::{Attempt, TaskState};
    use jobc_place::usage::GpuUse;
    use serde_json::json;

    fn record(tasks: Vec<TaskStatus>) -> Record {
        let mut record: Record = serde_json::from_value(json!({
            "version": 1, "id": "train.1", "source": "/j/job.yaml", "target": "local", "owner": 0,
            "state": "succeeded", "submitted": "1970-01-01T00:00:00Z", "attempt": 1, "network": "host",
            "claim": {"cpu_millis": 0, "memory_bytes": 0, "gpus": 0, "disk_bytes": 0}, "tasks": [],
        }))
        .unwrap();
        record.tasks = tasks;
        assert_eq!(record.state, JobState::Succeeded);
        record
    }

    fn task(name: &str, attempt: u32, started: u64, ended: u64) -> TaskStatus {
        let mut task: TaskStatus =
            serde_json::from_value(json!({"task": name, "state": "succeeded", "attempt": attempt})).unwrap();
        task.limits = [("cpu_millis".to_owned(), 4000), ("memory_bytes".to_owned(), 64 << 30)].into();
        task.gpus = vec!["GPU-1".to_owned(), "GPU-2".to_owned()];
        task.started = Some(Time::from_millis(started));
        task.ended = Some(Time::from_millis(ended));
        assert_eq!(task.state, TaskState::Succeeded);
        task
    }

    fn sample(task: &str, attempt: u32, millis: u64, cpu_usec: u64, memory: u64, percent: u8) -> Sample {
        let gpu = GpuUse { memory: Some(memory / 2), utilization: Some(percent), ..GpuUse::default() };
        Sample {
            time: Time::from_millis(millis),
            task: task.parse().unwrap(),
            attempt,
            usage: Usage { cpu_usec: Some(cpu_usec), memory: Some(memory), ..Usage::default() },
            gpu: vec![gpu],
            energy: None,
            from_processes: false,
            last: false,
        }
    }

    #[test]
    fn the_largest_use_of_any_task_and_attempt_counts() {
        let mut first = task("w-0", 2, 20_000, 30_000);
        let (started, ended) = (Some(Time::from_millis(1000)), Some(Time::from_millis(11_000)));
        first.earlier = vec![Attempt {
            attempt: 1,
            started,
            ended,
            exit_code: Some(1),
            signal: None,
            reason: None,
            verdict: None,
            energy: None,
        }];
        let used = |gpu| Some(EnergyUse { gpu_millijoules: Some(gpu), ..EnergyUse::default() });
        first.earlier[0].energy = used(7_000);
        let record = record(vec![first, task("w-1", 1, 1000, 11_000)]);
        let samples = [
            sample("w-0", 1, 2000, 1_000_000, 8 << 30, 10),
            sample("w-0", 1, 4000, 5_000_000, 9 << 30, 90),
            // A rate over 10 ms would be anything.
            sample("w-0", 1, 4010, 5_100_000, 7 << 30, 80),
            Sample { energy: used(3_000), ..sample("w-0", 2, 21_000, 500_000, 1 << 30, 20) },
            sample("w-1", 1, 2000, 100_000, 2 << 30, 0),
        ];
        let usage = of_samples(&record, &samples, Time::from_millis(99_000));
        assert_eq!(usage.gpu_seconds, 2 * 30);
        assert_eq!(usage.cpu_seconds, 5);
        // The second attempt still runs, and nothing is known of the other task.
        assert_eq!((usage.energy.gpu_millijoules, usage.energy.incomplete), (Some(10_000), true));
        let [role] = &usage.roles[..] else { panic!("{usage:?}") };
        assert_eq!((role.role.as_str(), role.tasks, role.attempts), ("w", 2, 3));
        assert_eq!(role.asked, TaskLimits { cpu_millis: Some(4000), memory_bytes: Some(64 << 30), gpus: 2 });
        let used = Used {
            cpu_millis_peak: Some(2000),
            cpu_millis_mean: Some(1694),
            memory_peak_bytes: Some(9 << 30),
            gpu_percent_mean: Some(40),
            gpu_memory_peak_bytes: Some(9 << 29),
            oom_kills: 0,
        };
        assert_eq!(role.used, used);
    }

    #[test]
    fn nothing_measured_is_nothing_used() {
        let usage = of_samples(&record(vec![task("w-0", 1, 0, 500)]), &[], Time::default());
        assert_eq!((usage.gpu_seconds, usage.cpu_seconds), (1, 0));
        assert_eq!(usage.roles[0].used, Used::default());
    }
}
