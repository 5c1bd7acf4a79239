//! The current use of a job's tasks, for readers outside of its supervisor.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

use super::processes;
use super::sample::Sample;
use crate::directory::Directory;
use crate::record::Record;
use jobc_container::cgroup::Cgroup;
use jobc_container::state::Id;
use jobc_place::energy::EnergyUse;
use jobc_place::task::TaskStatus;
use jobc_place::time::Time;
use jobc_place::usage::GpuUse;
use jobc_sys::id::TaskId;

/// So much of the end of the file of samples holds the newest of each task, and their GPUs.
const TAIL_BYTES: u64 = 256 << 10;

/// The GPUs of a task, and its energy.
type LastKnown = (Vec<GpuUse>, Option<EnergyUse>);

/// The groups of a job's running tasks.
#[derive(Debug)]
pub struct LiveUsage {
    directory: Directory,
    groups: BTreeMap<TaskId, (u32, Cgroup)>,
}

impl LiveUsage {
    /// The tasks of a job.
    pub fn new(directory: &Directory) -> Self {
        Self { directory: directory.clone(), groups: BTreeMap::new() }
    }

    /// The use of each task that is alive by the record; values of GPUs and energy as the supervisor last saw them.
    pub fn sample(&mut self, record: &Record) -> Vec<Sample> {
        let alive = record.tasks.iter().filter(|task| task.state.is_alive());
        let attempts: BTreeMap<&TaskId, u32> = alive.clone().map(|task| (&task.task, task.attempt)).collect();
        self.groups.retain(|task, (attempt, _)| attempts.get(task) == Some(attempt));
        let store = self.directory.containers();
        let mut gpus = self.last_known(&attempts);
        let mut samples = vec![];
        for task in alive {
            if !self.groups.contains_key(&task.task) {
                let container = task.container.as_deref().and_then(|name| Id::new(name).ok());
                // A container that is being created or removed is sampled the next time.
                let Some(state) = container.and_then(|id| store.read(&id).ok()) else { continue };
                let group = Cgroup::open(state.cgroup.unwrap_or_default());
                self.groups.insert(task.task.clone(), (task.attempt, group));
            }
            let Some((attempt, group)) = self.groups.get(&task.task) else { continue };
            let usage = group.usage();
            let (gpu, energy) = gpus.remove(&task.task).unwrap_or_default();
            samples.push(Sample {
                time: Time::now(),
                task: task.task.clone(),
                attempt: *attempt,
                from_processes: processes::is_needed(&usage),
                usage,
                gpu,
                energy,
                last: false,
            });
        }
        fill_from_processes(record, &mut samples);
        samples
    }

    /// What only the supervisor sees of running attempts, by their last samples: GPUs and energy.
    fn last_known(&self, attempts: &BTreeMap<&TaskId, u32>) -> BTreeMap<TaskId, LastKnown> {
        let read = || {
            let file = File::open(self.directory.samples_file()).ok()?;
            let from = file.metadata().ok()?.len().saturating_sub(TAIL_BYTES);
            let mut text = vec![0; usize::try_from(TAIL_BYTES).ok()?];
            let length = file.read_at(&mut text, from).ok()?;
            text.truncate(length);
            Some(text)
        };
        let text = read().unwrap_or_default();
        let samples =
            text.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice::<Sample>(line).ok());
        let own = samples.filter(|sample| attempts.get(&sample.task) == Some(&sample.attempt));
        own.map(|sample| (sample.task, (sample.gpu, sample.energy))).collect()
    }
}

/// Completes samples of tasks whose cgroups do not count all.
fn fill_from_processes(record: &Record, samples: &mut [Sample]) {
    if !samples.iter().any(|sample| sample.from_processes) {
        return;
    }
    let known: BTreeMap<&TaskId, &TaskStatus> = record.tasks.iter().map(|task| (&task.task, task)).collect();
    let process = |sample: &Sample| {
        let process = known.get(&sample.task)?.process.filter(|_| sample.from_processes)?;
        process.is_alive().then_some(process.pid)
    };
    let asked: Vec<(usize, u32)> =
        samples.iter().enumerate().filter_map(|(place, sample)| Some((place, process(sample)?))).collect();
    let pids: Vec<u32> = asked.iter().map(|(_, pid)| *pid).collect();
    let read = processes::read(&pids);
    for (place, pid) in asked {
        if let Some(task) = read.get(&pid) {
            processes::fill(&mut samples[place].usage, task.usage);
            samples[place].time = Time::now();
        }
    }
}
