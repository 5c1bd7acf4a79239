//! Tasks' use of NVIDIA GPUs, as NVML reports it.
//!
//! NVML can be slow, so it is queried at one sample and read at a later one, and the query process is started only for
//! jobs with GPUs.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use jobc_gpu::nvml::UsageSample;
use serde::{Deserialize, Serialize};

use jobc_gpu::Host;
use jobc_gpu::nvml::watch::NvmlWatch;

/// The usage of a GPU by a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuUse {
    /// The GPU's UUID.
    pub gpu: String,
    /// Bytes of its memory that the task's processes hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Percent of the time in which the GPU was busy, with whichever processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilization: Option<u8>,
}

/// How often to ask.
const QUERY_INTERVAL: Duration = Duration::from_secs(5);

/// How often to ask while an attempt is new: a short job, and a user who looks, should see its use.
const FIRST_QUERY_INTERVAL: Duration = Duration::from_millis(500);

/// How long an attempt is new.
const FIRST_QUERIES: Duration = Duration::from_secs(15);

/// How long to wait for an answer.
const QUERY_TIMEOUT: Duration = Duration::from_secs(30);

/// Consecutive failures after which queries stop.
const MAX_FAILURES: u32 = 3;

/// The GPUs of this host.
#[derive(Debug)]
pub(super) struct GpuMonitor {
    machine: Host,
    watch: Option<NvmlWatch>,
    query_sent: Option<Instant>,
    next: Instant,
    often_until: Instant,
    failures: u32,
    latest: UsageSample,
}

impl GpuMonitor {
    /// The GPUs of a host; nothing where NVIDIA's driver has made no nodes.
    pub(super) fn find(machine: Host) -> Option<Self> {
        machine.has("/dev/nvidiactl").then(|| Self {
            machine,
            watch: None,
            query_sent: None,
            next: Instant::now(),
            often_until: Instant::now(),
            failures: 0,
            latest: UsageSample::default(),
        })
    }

    /// An attempt begins, so that its first use is asked for soon.
    pub(super) fn attempt_begins(&mut self, now: Instant) {
        (self.next, self.often_until) = (now, now + FIRST_QUERIES);
    }

    /// Takes a response if there is one, or sends the next query; never waits.
    pub(super) fn poll(&mut self, now: Instant) {
        if self.failures >= MAX_FAILURES {
            return;
        }
        let result = self.receive(now).and_then(|()| self.query(now));
        if result.is_err() {
            self.latest = UsageSample::default();
            self.failures += 1;
            (self.watch, self.query_sent) = (None, None);
        }
    }

    fn receive(&mut self, now: Instant) -> io::Result<()> {
        let (Some(watch), Some(since)) = (&mut self.watch, self.query_sent) else { return Ok(()) };
        match watch.receive()? {
            Some(moment) => (self.latest, self.failures, self.query_sent) = (moment, 0, None),
            None if now.duration_since(since) >= QUERY_TIMEOUT => return Err(io::ErrorKind::TimedOut.into()),
            None => {}
        }
        Ok(())
    }

    fn query(&mut self, now: Instant) -> io::Result<()> {
        if self.query_sent.is_some() || now < self.next {
            return Ok(());
        }
        self.next = now + if now < self.often_until { FIRST_QUERY_INTERVAL } else { QUERY_INTERVAL };
        if self.watch.is_none() {
            self.watch = NvmlWatch::start(&self.machine, self.failures as usize)?;
        }
        if let Some(watch) = &mut self.watch {
            watch.request()?;
            self.query_sent = Some(now);
        }
        Ok(())
    }

    /// Whether any process uses a GPU.
    pub(super) fn in_use(&self) -> bool {
        !self.latest.processes.is_empty()
    }

    /// The usage of these processes.
    pub(super) fn used_by(&self, processes: &[u32]) -> Vec<GpuUse> {
        used_by(&self.latest, processes)
    }
}

fn used_by(sample: &UsageSample, processes: &[u32]) -> Vec<GpuUse> {
    let mut used: BTreeMap<&str, Option<u64>> = BTreeMap::new();
    for (_, gpu, memory) in sample.processes.iter().filter(|(pid, ..)| processes.contains(pid)) {
        let sum = used.entry(gpu).or_default();
        *sum = memory.map(|memory| memory + sum.unwrap_or(0)).or(*sum);
    }
    let busy = |gpu: &str| sample.busy.iter().find(|(uuid, _)| uuid == gpu).and_then(|(_, percent)| *percent);
    used.into_iter()
        .map(|(gpu, memory)| GpuUse { gpu: gpu.to_owned(), memory, utilization: busy(gpu) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jobc_gpu::host::NvmlProgram;

    #[test]
    fn processes_are_matched_to_their_gpus() {
        let (one, other) = ("GPU-5a5ba042", "GPU-8a56a4bc");
        let sample = UsageSample {
            busy: vec![(other.into(), Some(97)), (one.into(), None)],
            processes: vec![
                (4711, other.into(), Some(1024 << 20)),
                (4712, other.into(), Some(512 << 20)),
                (4713, one.into(), None),
                (9, one.into(), Some(70000 << 20)),
            ],
        };
        let used = used_by(&sample, &[4711, 4712, 4713]);
        let expected = [
            GpuUse { gpu: one.into(), memory: None, utilization: None },
            GpuUse { gpu: other.into(), memory: Some(1536 << 20), utilization: Some(97) },
        ];
        assert_eq!(used, expected);
        assert_eq!(used_by(&sample, &[1]), []);
    }

    /// Asks a command instead of this program until `done`, without the time between two questions.
    fn watched(script: &str, done: impl Fn(&GpuMonitor) -> bool) -> GpuMonitor {
        let tree = tempfile::tempdir().unwrap();
        for name in ["proc/devices", "dev/nvidiactl", "usr/lib/libnvidia-ml.so.1"] {
            std::fs::create_dir_all(tree.path().join(name).parent().unwrap()).unwrap();
            std::fs::write(tree.path().join(name), "").unwrap();
        }
        let mut machine = Host::at(tree.path());
        machine.nvml.programs = vec![NvmlProgram::new("/bin/sh").arg("-c").arg(script)];
        let mut gpus = GpuMonitor::find(machine).unwrap();
        for _ in 0..1000 {
            if done(&gpus) {
                return gpus;
            }
            gpus.next = Instant::now();
            gpus.poll(Instant::now());
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("it goes on and on: {gpus:?}");
    }

    #[test]
    fn one_process_answers_again_and_again() {
        let answer = r#"while dd bs=1 count=1 2>/dev/null | grep -q .; do echo noise; n=$((n+1))
            echo '{"busy":[["GPU-1",'$n']],"processes":[[7,"GPU-1",5]]}'; done"#;
        let gpus = watched(answer, |gpus| gpus.latest.busy.first().is_some_and(|busy| busy.1 == Some(3)));
        assert!(gpus.in_use() && gpus.failures == 0, "{gpus:?}");
    }

    #[test]
    fn a_new_attempt_is_asked_about_often() {
        let mut gpus = watched("while dd bs=1 count=1 2>/dev/null | grep -q .; do echo '{}'; done", |gpus| {
            gpus.query_sent.is_some()
        });
        let now = Instant::now();
        gpus.attempt_begins(now);
        for (passed, interval) in
            [(0, FIRST_QUERY_INTERVAL), (14, FIRST_QUERY_INTERVAL), (16, QUERY_INTERVAL)]
        {
            let now = now + Duration::from_secs(passed);
            gpus.query_sent = None;
            gpus.query(now).unwrap();
            assert_eq!(gpus.next, now + interval, "after {passed} s");
        }
    }

    #[test]
    fn a_failing_program_is_not_queried_again() {
        let mut gpus = watched("exit 1", |gpus| gpus.failures == MAX_FAILURES);
        gpus.poll(Instant::now());
        assert!(gpus.watch.is_none() && !gpus.in_use());
    }
}
