//! Asking the kernel again and again what tasks use.

use std::io;
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

use super::energy::{EnergyMeter, HostReading, Packages};
use super::faults::{GpuActivity, GpuFault};
use super::gpu::{GpuMonitor, is_mps};
use super::processes::{self, TaskProcesses};
use super::sample::Sample;
use super::sample_file::SampleFile;
use crate::admission::ledger::Ledger;
use crate::admission::overview;
use crate::directory::Directory;
use jobc_container::cgroup::{Cgroup, CgroupRecord, Meter, Usage};
use jobc_gpu::Host;
use jobc_gpu::lease::Slot;
use jobc_place::energy::EnergyUse;
use jobc_place::time::Time;
use jobc_schema::idle::Idle;
use jobc_sys::id::TaskId;
use jobc_sys::syscall::ended::EndedUsage;

/// How often tasks are sampled if it costs little.
const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// When the first sample is taken after a task has begun: the tasks of a gang begin within such a time, and starting
/// them comes first.
const FIRST_SAMPLE_DELAY: Duration = Duration::from_millis(200);

/// How often the first answer of GPUs is looked for.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// The minimum sampling rate.
const MAX_INTERVAL: Duration = Duration::from_secs(30);

/// The maximum share of the time for sampling.
const COST_DIVISOR: u32 = 1000;

/// The same where all processes of the host are read for it.
const PROCESSES_COST_DIVISOR: u32 = 200;

/// A sample that equals the previous one is written after this time.
const REPEAT_INTERVAL: Duration = Duration::from_secs(30);

/// Takes samples of a job's running tasks.
#[derive(Debug)]
pub struct Sampler {
    sample_file: SampleFile,
    tasks: Vec<SampledTask>,
    gpus: Option<GpuMonitor>,
    /// The counters of the processors' energy, if this user may read them.
    packages: Option<Packages>,
    /// The claims of all jobs, in which slices of GPUs are counted.
    ledger: Option<Ledger>,
    next: Instant,
    /// When to look for the counters that an attempt begins with.
    next_look: Option<Instant>,
    /// How many files may be kept open.
    max_open_files: usize,
    /// The tasks with processes that the kernel has killed for lack of memory since the last question, and how many.
    oom_kills: Vec<(TaskId, u64)>,
    /// What tasks used by the latest samples.
    latest: Vec<(TaskId, Usage)>,
    /// `idle` of the job.
    idle: Option<IdleWatch>,
}

/// Since when no GPU of the job is used.
#[derive(Debug)]
struct IdleWatch {
    rule: Idle,
    since: Option<Instant>,
    /// Whether it was said.
    is_reported: bool,
}

impl IdleWatch {
    fn saw(&mut self, is_busy: bool, now: Instant) {
        if is_busy {
            (self.since, self.is_reported) = (None, false);
        } else {
            self.since.get_or_insert(now);
        }
    }

    /// Whether it is to be said now; once for each time of idleness.
    fn take(&mut self, now: Instant) -> bool {
        let after = Duration::from_secs(self.rule.after.0);
        let is_due = self.since.is_some_and(|since| now.duration_since(since) >= after);
        is_due && !std::mem::replace(&mut self.is_reported, is_due)
    }
}

/// A task that runs.
#[derive(Debug)]
struct SampledTask {
    task: TaskId,
    attempt: u32,
    group: Cgroup,
    /// The number of its first process.
    process: u32,
    /// Its devices.
    slots: Vec<Slot>,
    /// Whether its cgroup lacks counters, so that its processes are read; known after the first sample.
    by_processes: bool,
    /// The peak memory of its processes over all samples, if the kernel counts no peak.
    peak: u64,
    /// Its open files, from the first sample on and if their number allows it: opening them again costs six times as
    /// much.
    meter: MeterState,
    written: Option<Sample>,
    /// Its processes that the kernel has killed for lack of memory.
    oom_kills: u64,
    /// The energy that it has used.
    energy: EnergyMeter,
    /// A later sample that equals the written one except for its time.
    unchanged: Option<Sample>,
}

/// Whether a task's files are kept open.
#[derive(Debug)]
enum MeterState {
    /// It was not sampled yet.
    Unopened,
    /// They are open.
    Open(Meter),
    /// Too many files are open: each sample opens them.
    OpenedForEachSample,
}

impl Sampler {
    /// A sampler that writes to a job's directory; `has_gpus` is whether any of its tasks may have one.
    pub fn new(directory: &Directory, has_gpus: bool) -> Self {
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) / 2;
        Self {
            sample_file: SampleFile::new(directory.samples_file()),
            tasks: vec![],
            gpus: has_gpus.then(Host::here).and_then(GpuMonitor::find),
            packages: Packages::find(),
            ledger: has_gpus.then(|| Ledger::standard(&directory.parents())).and_then(Result::ok),
            next: Instant::now(),
            next_look: None,
            max_open_files: usize::try_from(files).unwrap_or(usize::MAX),
            oom_kills: vec![],
            latest: vec![],
            idle: None,
        }
    }

    /// Tasks come soon: what is slow the first time is begun.
    pub fn prepare(&mut self) {
        if let Some(gpus) = &mut self.gpus {
            gpus.attempt_begins(Instant::now());
        }
    }

    /// Watches from now on whether the GPUs of the job are used.
    pub fn watch_idle(&mut self, rule: Idle) {
        self.idle = Some(IdleWatch { rule, since: None, is_reported: false });
    }

    /// Whether the GPUs of the job are idle as `idle` says; true once for each time.
    pub fn take_idle(&mut self) -> bool {
        self.idle.as_mut().is_some_and(|idle| idle.take(Instant::now()))
    }

    /// The time of idleness begins anew.
    pub fn reset_idle(&mut self) {
        if let Some(idle) = &mut self.idle {
            idle.saw(true, Instant::now());
        }
    }

    /// An attempt has begun, in these groups, with this first process and these devices.
    pub fn add_attempt(
        &mut self,
        task: &TaskId,
        attempt: u32,
        groups: &CgroupRecord,
        process: u32,
        slots: Vec<Slot>,
    ) {
        let now = Instant::now();
        if self.tasks.is_empty() {
            self.next = now + FIRST_SAMPLE_DELAY;
        }
        if let Some(gpus) = &mut self.gpus {
            gpus.attempt_begins(now);
        }
        self.reset_idle();
        let energy = EnergyMeter::new(&slots, now);
        if energy.has_cards() {
            self.next_look = Some(now + LOOK_INTERVAL);
        }
        self.tasks.push(SampledTask {
            task: task.clone(),
            attempt,
            group: Cgroup::open(groups.clone()),
            process,
            slots,
            by_processes: false,
            peak: 0,
            meter: MeterState::Unopened,
            written: None,
            oom_kills: 0,
            energy,
            unchanged: None,
        });
    }

    /// Total usage of an attempt that has ended, before its cgroups are removed; it is written as well. `ended` is what
    /// its processes used, which counts where no cgroup does.
    pub fn remove_attempt(&mut self, task: &TaskId, ended: Option<EndedUsage>) -> Option<Sample> {
        let at = self.tasks.iter().position(|watched| watched.task == *task)?;
        let mut watched = self.tasks.swap_remove(at);
        watched.open_meter(0);
        let mut sample = Sample { last: true, ..watched.sample(Time::now(), None, None) };
        if let Some(ended) = ended.filter(|_| watched.by_processes) {
            let last = watched.unchanged.as_ref().or(watched.written.as_ref()).map(|last| &last.usage);
            processes::fill(&mut sample.usage, processes::at_end(ended, last));
        }
        if let Some(gpus) = self.gpus.as_mut().filter(|_| watched.energy.has_cards()) {
            gpus.attempt_ends(Instant::now());
        }
        let host = self.packages.as_mut().and_then(Packages::read);
        sample.energy = watched.count_energy(self.gpus.as_ref(), host, sample.usage.cpu_usec);
        let samples: Vec<Sample> = watched.unchanged.into_iter().chain([sample.clone()]).collect();
        // A sample that cannot be written is in the end event.
        let _ = self.sample_file.push(&samples);
        Some(sample)
    }

    /// The tasks of which the samples since the last call show that the kernel has killed processes for lack of memory, and
    /// how many since the attempt began.
    pub fn take_oom_kills(&mut self) -> Vec<(TaskId, u64)> {
        std::mem::take(&mut self.oom_kills)
    }

    /// What each running task has used, by the samples since the last call.
    pub fn take_latest(&mut self) -> Vec<(TaskId, Usage)> {
        std::mem::take(&mut self.latest)
    }

    /// What has happened to GPUs of tasks since the last call.
    pub fn take_gpu_faults(&mut self) -> Vec<(TaskId, GpuFault)> {
        let faults = self.gpus.as_mut().map(GpuMonitor::take_faults).unwrap_or_default();
        let of_tasks = |fault: GpuFault| {
            let tasks = self.tasks.iter().filter(|task| fault.is_of(&task.slots));
            tasks.map(|task| (task.task.clone(), fault.clone())).collect::<Vec<_>>()
        };
        faults.into_iter().flat_map(of_tasks).collect()
    }

    /// Asks for faults of GPUs at once, if a task has any: it has ended.
    pub fn ask_at_end(&mut self, task: &TaskId) {
        let has_gpus = self.tasks.iter().any(|watched| watched.task == *task && !watched.slots.is_empty());
        if let Some(gpus) = self.gpus.as_mut().filter(|_| has_gpus) {
            gpus.ask_at_end();
        }
    }

    /// What the GPUs of a task do, by the latest sample.
    pub fn gpu_activity(&self, task: &TaskId) -> Option<GpuActivity> {
        let watched = self.tasks.iter().find(|watched| watched.task == *task)?;
        self.gpus.as_ref()?.activity(&watched.slots)
    }

    /// The energy of each running task until now.
    pub fn energies(&self) -> Vec<(TaskId, Option<EnergyUse>)> {
        self.tasks.iter().map(|task| (task.task.clone(), task.energy.used())).collect()
    }

    /// When to call [`Self::sample`] next; never while nothing runs.
    pub fn next(&self) -> Option<Instant> {
        (!self.tasks.is_empty()).then(|| self.next_look.map_or(self.next, |look| look.min(self.next)))
    }

    /// Looks for the counters that attempts begin with: what comes before the next sample counts, too.
    fn look_at_gpus(&mut self, now: Instant) {
        self.next_look = None;
        let Some(gpus) = &mut self.gpus else { return };
        gpus.advance(now);
        for task in &mut self.tasks {
            task.energy.count_gpus(gpus);
        }
        if gpus.is_asked(now) && self.tasks.iter().any(|task| task.energy.waits()) {
            self.next_look = Some(now + LOOK_INTERVAL);
        }
    }

    /// Samples each running task and writes the samples with changes.
    ///
    /// # Errors
    ///
    /// They cannot be written; the next call retries.
    pub fn sample(&mut self) -> io::Result<()> {
        let (began, now) = (processor_time(), Instant::now());
        if now < self.next {
            self.look_at_gpus(now);
            return Ok(());
        }
        if let Some(gpus) = &mut self.gpus {
            let has_slices = self.tasks.iter().any(|task| task.slots.iter().any(is_mps));
            let ledger = self.ledger.as_ref().filter(|_| has_slices);
            gpus.poll(now, || ledger.map(overview::slices_by_mps).unwrap_or_default());
        }
        let time = Time::now();
        let mut open: usize = self.tasks.iter().map(SampledTask::open_files).sum();
        for watched in &mut self.tasks {
            open += watched.open_meter(self.max_open_files.saturating_sub(open));
        }
        let asked: Vec<u32> =
            self.tasks.iter().filter(|task| task.by_processes).map(|task| task.process).collect();
        let by_processes = processes::read(&asked);
        let host = self.packages.as_mut().and_then(Packages::read);
        let mut samples = vec![];
        self.latest.clear();
        for watched in &mut self.tasks {
            let processes = by_processes.get(&watched.process);
            let mut sample = watched.sample(time, self.gpus.as_ref(), processes);
            if let Some(processes) = processes {
                processes::fill(&mut sample.usage, processes.usage);
                watched.peak = watched.peak.max(processes.usage.memory.unwrap_or(0));
                sample.usage.memory_peak = sample.usage.memory_peak.map(|peak| peak.max(watched.peak));
            }
            sample.energy = watched.count_energy(self.gpus.as_ref(), host, sample.usage.cpu_usec);
            self.latest.push((watched.task.clone(), sample.usage));
            let kills = sample.usage.oom_kills.unwrap_or(0);
            if kills > watched.oom_kills {
                watched.oom_kills = kills;
                self.oom_kills.push((watched.task.clone(), kills));
            }
            watched.record(sample, &mut samples);
        }
        if let Some(idle) = &mut self.idle {
            let slots: Vec<&[Slot]> = self.tasks.iter().map(|task| &*task.slots).collect();
            let holds = slots.iter().any(|slots| !slots.is_empty());
            let is_used = |gpus: &GpuMonitor| slots.iter().any(|slots| gpus.is_busy(slots, idle.rule.gpu));
            let is_busy = !holds || self.gpus.as_ref().is_none_or(is_used);
            idle.saw(is_busy, now);
        }
        let result = self.sample_file.push(&samples);
        let cost = processor_time().saturating_sub(began);
        let divisor = if asked.is_empty() { COST_DIVISOR } else { PROCESSES_COST_DIVISOR };
        self.next = now + (cost * divisor).clamp(MIN_INTERVAL, MAX_INTERVAL);
        result
    }
}

impl SampledTask {
    /// How many files are open for it.
    fn open_files(&self) -> usize {
        if let MeterState::Open(meter) = &self.meter { meter.files() } else { 0 }
    }

    /// Opens its files at its first sample, at most `free` of them; returns the number of open files.
    fn open_meter(&mut self, free: usize) -> usize {
        if !matches!(self.meter, MeterState::Unopened) {
            return 0;
        }
        let meter = self.group.meter();
        self.by_processes = processes::is_needed(&meter.read());
        let files = meter.files();
        if files > free {
            self.meter = MeterState::OpenedForEachSample;
            return 0;
        }
        self.meter = MeterState::Open(meter);
        files
    }

    fn sample(&self, time: Time, gpus: Option<&GpuMonitor>, processes: Option<&TaskProcesses>) -> Sample {
        let usage = if let MeterState::Open(meter) = &self.meter { meter.read() } else { self.group.usage() };
        let by_mps = self.slots.iter().any(is_mps);
        let gpu = gpus.filter(|gpus| by_mps || gpus.in_use()).map(|gpus| match processes {
            // A task has either whole devices or slices.
            _ if by_mps => gpus.used_by_slices(&self.slots),
            Some(processes) => gpus.used_by(&processes.pids),
            None => gpus.used_by(&self.group.processes().unwrap_or_default()),
        });
        let (task, attempt) = (self.task.clone(), self.attempt);
        let (gpu, from_processes) = (gpu.unwrap_or_default(), self.by_processes);
        Sample { time, task, attempt, usage, gpu, energy: None, from_processes, last: false }
    }

    /// The energy that it has used until now.
    fn count_energy(
        &mut self,
        gpus: Option<&GpuMonitor>,
        host: Option<HostReading>,
        cpu_usec: Option<u64>,
    ) -> Option<EnergyUse> {
        if let Some(gpus) = gpus {
            self.energy.count_gpus(gpus);
        }
        if let Some(host) = host {
            self.energy.count_processors(host, cpu_usec);
        }
        self.energy.used()
    }

    /// Takes a sample in: what has changed is written, with the last sample before the change.
    fn record(&mut self, sample: Sample, out: &mut Vec<Sample>) {
        let is_same = self.written.as_ref().is_some_and(|written| {
            written.usage == sample.usage
                && written.gpu == sample.gpu
                && sample.time.since(written.time) < REPEAT_INTERVAL
        });
        if is_same {
            self.unchanged = Some(sample);
            return;
        }
        out.extend(self.unchanged.take());
        out.push(sample.clone());
        self.written = Some(sample);
    }
}

/// The processor time that this thread has used.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched() -> SampledTask {
        let group = Cgroup::open(CgroupRecord::default());
        let task = TaskId::new("a", 0);
        SampledTask {
            task,
            attempt: 1,
            group,
            process: 0,
            slots: vec![],
            by_processes: false,
            peak: 0,
            meter: MeterState::Unopened,
            written: None,
            oom_kills: 0,
            energy: EnergyMeter::new(&[], Instant::now()),
            unchanged: None,
        }
    }

    fn sample(second: u64, cpu: u64) -> Sample {
        let usage = Usage { cpu_usec: Some(cpu), ..Usage::default() };
        let (time, task) = (Time::from_millis(second * 1000), TaskId::new("a", 0));
        Sample {
            time,
            task,
            attempt: 1,
            usage,
            gpu: vec![],
            energy: None,
            from_processes: false,
            last: false,
        }
    }

    #[test]
    fn a_quiet_task_is_written_before_it_changes_and_once_in_a_while() {
        let mut watched = watched();
        let mut out = vec![];
        for second in 0..70 {
            watched.record(sample(second, if second < 45 { 0 } else { second }), &mut out);
        }
        let seconds: Vec<u64> = out.iter().map(|sample| sample.time.millis() / 1000).collect();
        let expected: Vec<u64> = [0, 29, 30, 44].into_iter().chain(45..70).collect();
        assert_eq!(seconds, expected);
    }

    #[test]
    fn the_rate_is_that_between_two_samples() {
        assert_eq!(sample(4, 3_000_000).cpu_millis_since(&sample(2, 1_000_000)), Some(1000));
        assert_eq!(sample(2, 3_000_000).cpu_millis_since(&sample(2, 1_000_000)), None);
        assert_eq!(sample(4, 1).cpu_millis_since(&sample(2, 2)), None);
    }

    #[test]
    fn idleness_is_said_once_until_a_gpu_is_used() {
        let rule = serde_json::from_value(serde_json::json!({"after": "10s"})).unwrap();
        let mut idle = IdleWatch { rule, since: None, is_reported: false };
        let began = Instant::now();
        let mut at = |second: u64, is_busy: bool| {
            let now = began + Duration::from_secs(second);
            idle.saw(is_busy, now);
            idle.take(now)
        };
        let said: Vec<u64> = (0..60).filter(|second| at(*second, matches!(second, 5 | 30..=32))).collect();
        assert_eq!(said, [16, 43]);
    }
}
