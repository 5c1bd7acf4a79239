//! Whether running tasks make progress, by what is seen of them from outside: lines, bytes, CPU time.
//!
//! A task that is quiet in one way may be well: a long computation prints nothing, and data that is loaded needs no CPU.
//! So two signs are needed, and what can be seen of the task must not contradict them. NCCL's own report stands for
//! itself: ranks that wait for a peer compute all the time. So do GPUs that are used all the time and draw little power:
//! the program that waits for them may compute. GPUs that work contradict all other signs.
//!
//! [`Watch`] decides, by a clock that stops while the job is frozen; [`examine`] reads what the record keeps.

mod debug_server;
pub(crate) mod examine;
mod flight_recorder;
mod ras;
mod sockets;

use std::collections::BTreeMap;
use std::time::Duration;

use jobc_container::cgroup::Usage;
use jobc_schema::plan::StallPlan;
use jobc_schema::stall::StallSign;

use crate::lifecycle::TaskNumber;
use crate::metrics::GpuActivity;

/// Less I/O than this in a second is none: what a runtime does by itself.
const MIN_BYTES_PER_SECOND: u64 = 1024;

/// Less CPU time than this, in thousandths of a CPU, is none: threads that wake up to look around.
const MIN_CPU_MILLIS: u64 = 10;

/// How often NCCL is asked about a task that prints nothing, at most.
const MIN_ASK_INTERVAL: Duration = Duration::from_secs(2);

/// The tasks whose progress is watched.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    tasks: BTreeMap<TaskNumber, WatchedTask>,
}

/// When a task was last seen at work, by each sign that can be seen.
#[derive(Debug, Default)]
struct WatchedTask {
    after: Duration,
    signs: Vec<StallSign>,
    line: Duration,
    io: Option<Duration>,
    cpu: Option<Duration>,
    /// Since when its GPUs wait in a kernel.
    gpu_spins: Option<Duration>,
    /// When its GPUs were last seen at work.
    gpu_worked: Option<Duration>,
    /// The counters at the last look, and when.
    last: Option<(Duration, Counters)>,
    /// When NCCL was asked last.
    asked: Option<Duration>,
    /// NCCL reports that ranks have lost each other.
    nccl: bool,
    /// It was reported, and has not been at work since.
    is_reported: bool,
}

/// The counters of a task at one time. What is not known does not count.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    /// CPU time in microseconds.
    pub(crate) cpu_usec: Option<u64>,
    /// Bytes of disks, by the kernel's counters of the task.
    pub(crate) disk_bytes: Option<u64>,
    /// Bytes of its processes and of its network, which are read only of tasks that print nothing.
    pub(crate) other_bytes: Option<u64>,
    /// What its GPUs do.
    pub(crate) gpu: Option<GpuActivity>,
}

impl Counters {
    /// The counters in a sample.
    pub(crate) fn of(usage: &Usage, other_bytes: Option<u64>, gpu: Option<GpuActivity>) -> Self {
        let disk_bytes = usage.read_bytes.map(|read| read + usage.written_bytes.unwrap_or(0));
        Self { cpu_usec: usage.cpu_usec, disk_bytes, other_bytes, gpu }
    }
}

/// What is to be done about a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// It makes no progress, by these signs.
    Stalled(TaskNumber, Vec<StallSign>),
    /// It prints nothing: NCCL may know why.
    AskNccl(TaskNumber),
}

impl Watch {
    /// Begins to watch an attempt.
    pub(crate) fn begin(&mut self, task: TaskNumber, rules: &StallPlan, now: Duration) {
        let watched = WatchedTask {
            after: Duration::from_secs(rules.after_seconds),
            signs: rules.signs.clone(),
            line: now,
            ..WatchedTask::default()
        };
        self.tasks.insert(task, watched);
    }

    /// The attempt is over.
    pub(crate) fn end(&mut self, task: TaskNumber) {
        self.tasks.remove(&task);
    }

    /// The task wrote something.
    pub(crate) fn wrote(&mut self, task: TaskNumber, now: Duration) {
        if let Some(task) = self.tasks.get_mut(&task) {
            task.line = now;
            (task.is_reported, task.nccl) = (false, false);
        }
    }

    /// Whether the counters of its processes are wanted, which are dear to read.
    pub(crate) fn wants_bytes(&self, task: TaskNumber, now: Duration) -> bool {
        self.tasks.get(&task).is_some_and(|task| now.saturating_sub(task.line) >= task.after / 4)
    }

    /// The counters of a task now.
    pub(crate) fn counted(&mut self, task: TaskNumber, counters: Counters, now: Duration) {
        let Some(task) = self.tasks.get_mut(&task) else { return };
        match counters.gpu {
            Some(GpuActivity::Spins) => _ = task.gpu_spins.get_or_insert(now),
            Some(GpuActivity::Works) => (task.gpu_spins, task.gpu_worked) = (None, Some(now)),
            Some(GpuActivity::Idle) | None => task.gpu_spins = None,
        }
        let Some((since, last)) = task.last.replace((now, counters)) else {
            task.io = counters.disk_bytes.or(counters.other_bytes).map(|_| now);
            task.cpu = counters.cpu_usec.map(|_| now);
            return;
        };
        let millis = u64::try_from(now.saturating_sub(since).as_millis()).unwrap_or(u64::MAX).max(1);
        let more = |now: Option<u64>, before: Option<u64>| Some(now?.saturating_sub(before?));
        let disk = more(counters.disk_bytes, last.disk_bytes);
        let other = more(counters.other_bytes, last.other_bytes);
        let bytes = disk.unwrap_or(0).max(other.unwrap_or(0));
        let is_known = counters.disk_bytes.or(counters.other_bytes).is_some();
        // Of processes whose bytes were not read before, nothing is known yet.
        let is_first = counters.other_bytes.is_some() && last.other_bytes.is_none();
        if is_known
            && (task.io.is_none() || is_first || bytes.saturating_mul(1000) / millis >= MIN_BYTES_PER_SECOND)
        {
            task.io = Some(now);
        }
        let cpu = more(counters.cpu_usec, last.cpu_usec);
        if counters.cpu_usec.is_some() && cpu.is_none_or(|usec| usec / millis >= MIN_CPU_MILLIS) {
            task.cpu = Some(now);
        }
    }

    /// Nothing could happen until now: the job was frozen.
    pub(crate) fn restart(&mut self, now: Duration) {
        for task in self.tasks.values_mut() {
            task.line = now;
            task.io = task.io.map(|_| now);
            task.cpu = task.cpu.map(|_| now);
            (task.gpu_spins, task.last) = (None, None);
        }
    }

    /// What NCCL says of a task's ranks.
    pub(crate) fn note_nccl(&mut self, task: TaskNumber, has_trouble: bool) {
        if let Some(task) = self.tasks.get_mut(&task) {
            task.nccl = has_trouble;
        }
    }

    /// It is reported, once until it is at work again.
    pub(crate) fn reported(&mut self, task: TaskNumber) {
        if let Some(task) = self.tasks.get_mut(&task) {
            task.is_reported = true;
        }
    }

    /// Whether it was reported, and has not been at work since.
    pub(crate) fn is_reported(&self, task: TaskNumber) -> bool {
        self.tasks.get(&task).is_some_and(|task| task.is_reported)
    }

    /// Whether a task has been quiet in every way for half of its time: it may have stopped before the one that was
    /// found.
    pub(crate) fn is_quiet(&self, task: TaskNumber, now: Duration) -> bool {
        self.tasks.get(&task).is_some_and(|task| {
            let last = [Some(task.line), task.io, task.cpu].into_iter().flatten().max().unwrap_or(now);
            now.saturating_sub(last) >= task.after / 2
        })
    }

    /// How long a task has printed nothing.
    pub(crate) fn silent(&self, task: TaskNumber, now: Duration) -> Option<Duration> {
        self.tasks.get(&task).map(|task| now.saturating_sub(task.line))
    }

    /// Whether nothing is watched.
    pub(crate) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// What is to be done now.
    pub(crate) fn check(&mut self, now: Duration) -> Vec<Finding> {
        let mut found = vec![];
        for (&number, task) in self.tasks.iter_mut().filter(|(_, task)| !task.is_reported) {
            let signs = task.signs_at(now);
            if task.is_stalled(&signs, now) {
                found.push(Finding::Stalled(number, signs));
            } else if task.asks_nccl(now) {
                task.asked = Some(now);
                found.push(Finding::AskNccl(number));
            }
        }
        found
    }
}

impl WatchedTask {
    /// Since when it shows a sign; `None` if that cannot be seen.
    fn since(&self, sign: StallSign) -> Option<Duration> {
        match sign {
            StallSign::Logs => Some(self.line),
            StallSign::Io => self.io,
            StallSign::Cpu => self.cpu,
            StallSign::Gpu => self.gpu_spins,
            StallSign::Nccl => self.nccl.then_some(self.line),
        }
    }

    /// The signs that it shows.
    fn signs_at(&self, now: Duration) -> Vec<StallSign> {
        let is_shown =
            |sign: &StallSign| self.since(*sign).is_some_and(|since| now.saturating_sub(since) >= self.after);
        self.signs.iter().copied().filter(is_shown).collect()
    }

    /// Whether these signs are enough: two of them, and what is at work is explained by NCCL, or the CPU by the GPUs.
    fn is_stalled(&self, signs: &[StallSign], now: Duration) -> bool {
        let shows = |sign: StallSign| signs.contains(&sign);
        let is_explained = |sign: StallSign| match sign {
            StallSign::Nccl | StallSign::Gpu => true,
            StallSign::Cpu => shows(StallSign::Gpu),
            StallSign::Logs | StallSign::Io => false,
        };
        let is_at_work = |sign: StallSign| !is_explained(sign) && self.since(sign).is_some() && !shows(sign);
        let gpus_work = self.signs.contains(&StallSign::Gpu)
            && self.gpu_worked.is_some_and(|at| now.saturating_sub(at) < self.after);
        signs.len() >= 2
            && (shows(StallSign::Nccl) || !gpus_work && !self.signs.iter().any(|sign| is_at_work(*sign)))
    }

    /// Whether NCCL is to be asked: nothing was printed, and it was not asked for a while.
    fn asks_nccl(&self, now: Duration) -> bool {
        let interval = MIN_ASK_INTERVAL.max(self.after / 4);
        self.signs.contains(&StallSign::Nccl)
            && now.saturating_sub(self.line) >= self.after
            && self.asked.is_none_or(|asked| now.saturating_sub(asked) >= interval)
    }
}

#[cfg(test)]
mod tests;
