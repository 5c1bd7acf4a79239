//! Tasks' use of NVIDIA GPUs, as NVML reports it.
//!
//! NVML can be slow, so it is queried at one sample and read at a later one, and the query process is started only for
//! jobs with GPUs.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use jobc_gpu::lease::{Sharing, Slot};
use jobc_gpu::nvml::UsageSample;
use jobc_place::usage::{GpuUse, MpsUse};

use super::faults::{self, GpuActivity, GpuFault};
use jobc_gpu::Host;
use jobc_gpu::nvml::watch::NvmlWatch;

/// How often to ask.
const QUERY_INTERVAL: Duration = Duration::from_secs(5);

/// How often to ask while an attempt is new: a short job, and a user who looks, should see its use.
const FIRST_QUERY_INTERVAL: Duration = Duration::from_millis(500);

/// How long an attempt is new.
const FIRST_QUERIES: Duration = Duration::from_secs(15);

/// How long to wait for an answer.
const QUERY_TIMEOUT: Duration = Duration::from_secs(30);

/// How long to wait for an answer when a task has ended.
const LAST_ANSWER_TIMEOUT: Duration = Duration::from_millis(500);

/// How often to wait for one: the tasks of a gang end together.
const LAST_ANSWER_INTERVAL: Duration = Duration::from_secs(2);
/// How long the end of an attempt waits for the last answer, and the job's loop with it.
const LAST_QUERY_TIMEOUT: Duration = Duration::from_millis(200);

/// An answer that takes longer is looked for with the next sample.
const SOON: Duration = Duration::from_secs(2);

/// An answer that is not older is that of now.
const SAME_TIME: Duration = Duration::from_millis(20);

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
    next_at_end: Instant,
    failures: u32,
    latest: UsageSample,
    /// What happened to GPUs since it was taken last.
    faults: Vec<GpuFault>,
    /// When that was asked for.
    measured: Option<Instant>,
    /// How many slices of each GPU jobs have.
    slices: BTreeMap<String, u32>,
    /// Whether they are to be counted anew.
    counts_slices: bool,
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
            next_at_end: Instant::now(),
            failures: 0,
            latest: UsageSample::default(),
            faults: vec![],
            measured: None,
            slices: BTreeMap::new(),
            counts_slices: false,
        })
    }

    /// An attempt begins: it is asked at once what the counters of energy begin with.
    pub(super) fn attempt_begins(&mut self, now: Instant) {
        (self.next, self.often_until) = (now, now + FIRST_QUERIES);
        self.advance(now);
    }

    /// An attempt has ended: asks what the counters end with, and waits a moment for the answer.
    pub(super) fn attempt_ends(&mut self, now: Instant) {
        let is_new = |measured: Option<Instant>| measured.is_some_and(|measured| measured >= now);
        // Of tasks that end together, one answer is enough.
        if self.measured.is_some_and(|measured| now.duration_since(measured) <= SAME_TIME) {
            return;
        }
        self.next = now;
        self.advance(now);
        // A driver that is slow now is not waited for again and again.
        let is_slow = self.query_sent.is_some_and(|sent| now.duration_since(sent) > LAST_QUERY_TIMEOUT);
        if is_slow {
            return;
        }
        while self.failures < MAX_FAILURES && !is_new(self.measured) && now.elapsed() < LAST_QUERY_TIMEOUT {
            std::thread::sleep(Duration::from_millis(1));
            self.advance(Instant::now());
        }
    }

    /// Takes a response if there is one, or sends the next query; never waits. With each query, `slices` counts anew
    /// how many slices of each GPU jobs have.
    pub(super) fn poll(&mut self, now: Instant, slices: impl FnOnce() -> BTreeMap<String, u32>) {
        self.advance(now);
        if std::mem::take(&mut self.counts_slices) {
            self.slices = slices();
        }
    }

    /// Takes a response if there is one, or sends the next query.
    pub(super) fn advance(&mut self, now: Instant) {
        if self.failures >= MAX_FAILURES {
            return;
        }
        let result = self.receive(now).and_then(|()| self.query(now));
        if result.is_err() {
            (self.latest, self.measured) = (UsageSample::default(), None);
            self.failures += 1;
            (self.watch, self.query_sent) = (None, None);
        }
    }

    fn receive(&mut self, now: Instant) -> io::Result<()> {
        let (Some(watch), Some(since)) = (&mut self.watch, self.query_sent) else { return Ok(()) };
        match watch.receive()? {
            Some(moment) => {
                self.faults.extend(faults::between(&self.latest, &moment));
                (self.latest, self.failures, self.query_sent) = (moment, 0, None);
                self.measured = Some(since);
            }
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
            (self.query_sent, self.counts_slices) = (Some(now), true);
        }
        Ok(())
    }

    /// Asks at once, and waits a moment for the answer: a task with GPUs has ended, and the driver may know why.
    pub(super) fn ask_at_end(&mut self) {
        let began = Instant::now();
        if self.watch.is_none() || self.failures >= MAX_FAILURES || began < self.next_at_end {
            return;
        }
        self.next_at_end = began + LAST_ANSWER_INTERVAL;
        // An answer that is on its way was asked for before the end.
        if self.is_answered_by(began + LAST_ANSWER_TIMEOUT) {
            self.next = began;
            let _ = self.query(began);
            self.is_answered_by(began + LAST_ANSWER_TIMEOUT);
        }
    }

    /// Waits for the answer to what was asked.
    fn is_answered_by(&mut self, until: Instant) -> bool {
        while self.query_sent.is_some() {
            // An error is handled with the next sample.
            if self.receive(Instant::now()).is_err() || Instant::now() >= until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        true
    }

    /// What happened to GPUs since the last call.
    pub(super) fn take_faults(&mut self) -> Vec<GpuFault> {
        std::mem::take(&mut self.faults)
    }

    /// What whole GPUs do, all together; `None` if it is not known of each.
    pub(super) fn activity(&self, slots: &[Slot]) -> Option<GpuActivity> {
        faults::activity(&self.latest, slots)
    }

    /// Whether any of these devices is used as much, by whomever. What is not known may be.
    pub(super) fn is_busy(&self, slots: &[Slot], percent: u32) -> bool {
        let used = |slot: &Slot| utilization(&self.latest, &slot.name).map(u32::from);
        slots.iter().any(|slot| used(slot).is_none_or(|used| used >= percent))
    }

    /// Whether an answer may come soon.
    pub(super) fn is_asked(&self, now: Instant) -> bool {
        self.query_sent.is_some_and(|sent| now.duration_since(sent) < SOON)
    }

    /// When the latest answer was asked for.
    pub(super) fn measured(&self) -> Option<Instant> {
        self.measured
    }

    /// The counters of these cards in millijoules; nothing if one of them has none.
    pub(super) fn energy_of(&self, cards: &[String]) -> Option<BTreeMap<String, u64>> {
        let counter = |card: &String| self.latest.energy.iter().find(|(uuid, _)| uuid == card).cloned();
        cards.iter().map(counter).collect()
    }

    /// Whether any process uses a GPU.
    pub(super) fn in_use(&self) -> bool {
        !self.latest.processes.is_empty()
    }

    /// The usage of these processes.
    pub(super) fn used_by(&self, processes: &[u32]) -> Vec<GpuUse> {
        used_by(&self.latest, processes)
    }

    /// What is known of a task with these devices, some of which are slices by MPS.
    pub(super) fn used_by_slices(&self, slots: &[Slot]) -> Vec<GpuUse> {
        used_by_slices(&self.latest, &self.slices, slots)
    }
}

/// Whether a device is a slice by MPS.
pub(super) fn is_mps(slot: &Slot) -> bool {
    slot.slice.as_ref().is_some_and(|slice| slice.by == Sharing::Mps)
}

/// Utilization of a GPU in percent of the time.
fn utilization(sample: &UsageSample, gpu: &str) -> Option<u8> {
    sample.busy.iter().find(|(uuid, _)| uuid == gpu).and_then(|(_, percent)| *percent)
}

fn used_by_slices(sample: &UsageSample, slices: &BTreeMap<String, u32>, slots: &[Slot]) -> Vec<GpuUse> {
    let mut used: BTreeMap<&str, (u32, Option<u64>)> = BTreeMap::new();
    for slot in slots.iter().filter(|slot| is_mps(slot)) {
        let limit = slot.slice.as_ref().and_then(|slice| slice.memory_bytes);
        // A task may have several slices of a GPU.
        let (count, sum) = used.entry(&slot.name).or_insert((0, Some(0)));
        (*count, *sum) = (*count + 1, sum.zip(limit).map(|(sum, limit)| sum + limit));
    }
    let of_gpu = |(gpu, (own, memory_limit)): (&str, (u32, Option<u64>))| GpuUse {
        gpu: gpu.to_owned(),
        memory: None,
        utilization: utilization(sample, gpu),
        mps: Some(MpsUse { memory_limit, slices: slices.get(gpu).copied().unwrap_or(own).max(own) }),
    };
    used.into_iter().map(of_gpu).collect()
}

fn used_by(sample: &UsageSample, processes: &[u32]) -> Vec<GpuUse> {
    let mut used: BTreeMap<&str, Option<u64>> = BTreeMap::new();
    for (_, gpu, memory) in sample.processes.iter().filter(|(pid, ..)| processes.contains(pid)) {
        let sum = used.entry(gpu).or_default();
        *sum = memory.map(|memory| memory + sum.unwrap_or(0)).or(*sum);
    }
    used.into_iter()
        .map(|(gpu, memory)| GpuUse {
            gpu: gpu.to_owned(),
            memory,
            utilization: utilization(sample, gpu),
            mps: None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jobc_gpu::DeviceId;
    use jobc_gpu::host::NvmlProgram;
    use jobc_gpu::lease::Slice;
    use jobc_schema::gpu::Vendor;

    #[test]
    fn processes_are_matched_to_their_gpus() {
        let (one, other) = ("GPU-5a5ba042", "GPU-8a56a4bc");
        let sample = UsageSample {
            busy: vec![(other.into(), Some(97)), (one.into(), None)],
            energy: vec![],
            processes: vec![
                (4711, other.into(), Some(1024 << 20)),
                (4712, other.into(), Some(512 << 20)),
                (4713, one.into(), None),
                (9, one.into(), Some(70000 << 20)),
            ],
            ..UsageSample::default()
        };
        let used = used_by(&sample, &[4711, 4712, 4713]);
        let expected = [
            GpuUse { gpu: one.into(), memory: None, utilization: None, mps: None },
            GpuUse { gpu: other.into(), memory: Some(1536 << 20), utilization: Some(97), mps: None },
        ];
        assert_eq!(used, expected);
        assert_eq!(used_by(&sample, &[1]), []);
    }

    #[test]
    fn slices_by_mps_have_the_use_of_the_card_and_their_limits() {
        let slot = |number: u32, by, memory_bytes| {
            let device = DeviceId { vendor: Vendor::Nvidia, gpu: number, mig: None };
            let enforced_by = Sharing::enforcer(by);
            let slice = Slice { memory_bytes, cores_percent: Some(30), by, enforced_by, cards: vec![] };
            Slot { device, name: format!("GPU-{number}"), slice: Some(slice) }
        };
        let sample = UsageSample {
            busy: vec![("GPU-0".into(), Some(97)), ("GPU-1".into(), None)],
            energy: vec![],
            // Of the server.
            processes: vec![(4711, "GPU-0".into(), Some(3 << 30))],
            ..UsageSample::default()
        };
        let slots = [
            slot(0, Sharing::Mps, Some(8 << 30)),
            slot(0, Sharing::Mps, Some(4 << 30)),
            slot(1, Sharing::Mps, None),
            slot(2, Sharing::Hami, Some(8 << 30)),
        ];
        let of = |gpu: &str, utilization, memory_limit, slices| GpuUse {
            gpu: gpu.to_owned(),
            memory: None,
            utilization,
            mps: Some(MpsUse { memory_limit, slices }),
        };
        // Jobs have three slices of GPU 0.
        let slices = BTreeMap::from([("GPU-0".to_owned(), 3)]);
        let expected = [of("GPU-0", Some(97), Some(12 << 30), 3), of("GPU-1", None, None, 1)];
        assert_eq!(used_by_slices(&sample, &slices, &slots), expected);
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
            gpus.poll(Instant::now(), BTreeMap::new);
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
        gpus.poll(Instant::now(), BTreeMap::new);
        assert!(gpus.watch.is_none() && !gpus.in_use());
    }
}
