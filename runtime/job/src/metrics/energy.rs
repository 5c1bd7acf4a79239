//! The energy of tasks: of whole GPUs by NVML's counters, of processors by RAPL's.
//!
//! NVML counts a card, so a task with a part of one has no number of its own. RAPL counts the packages of the host: a
//! task has the share of them that it has of the CPU time of all programs, which is exact where it is alone.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use jobc_gpu::lease::Slot;
use jobc_place::energy::EnergyUse;

use super::gpu::GpuMonitor;

/// Where the kernel shows RAPL's counters, which only root may read unless an administrator allows it.
const POWERCAP: &str = "/sys/class/powercap";

/// The unit of the CPU time in /proc/stat, in microseconds (proc(5), USER_HZ).
const TICK_USEC: u64 = 10_000;

/// The counters of the processors of this host.
#[derive(Debug)]
pub(super) struct Packages {
    counters: Vec<Counter>,
    /// Microjoules since this was made.
    total: u64,
}

/// A counter that begins at 0 again after its range.
#[derive(Debug)]
struct Counter {
    path: PathBuf,
    range: u64,
    last: u64,
}

/// Microjoules of the processors and microseconds of CPU time of all programs, both since any time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HostReading {
    microjoules: u64,
    cpu_usec: u64,
}

impl Packages {
    /// Those of this host; `None` if there are none, or this user must not read one of them.
    pub(super) fn find() -> Option<Self> {
        Self::at(Path::new(POWERCAP))
    }

    fn at(directory: &Path) -> Option<Self> {
        let mut counters = vec![];
        for entry in fs::read_dir(directory).ok()?.flatten() {
            let zone = entry.path();
            // Others are parts of these, or the whole board.
            let name = fs::read_to_string(zone.join("name")).unwrap_or_default();
            if !name.starts_with("package") {
                continue;
            }
            let path = zone.join("energy_uj");
            let (last, range) = (number(&path)?, number(&zone.join("max_energy_range_uj"))?);
            counters.push(Counter { path, range, last });
        }
        (!counters.is_empty()).then_some(Self { counters, total: 0 })
    }

    /// Reads them.
    pub(super) fn read(&mut self) -> Option<HostReading> {
        let stat = fs::read_to_string("/proc/stat").ok()?;
        Some(HostReading { microjoules: self.advance()?, cpu_usec: busy_usec(&stat)? })
    }

    fn advance(&mut self) -> Option<u64> {
        for counter in &mut self.counters {
            let now = number(&counter.path)?;
            let more = now.checked_sub(counter.last);
            self.total += more.unwrap_or_else(|| now + counter.range.saturating_sub(counter.last));
            counter.last = now;
        }
        Some(self.total)
    }
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The CPU time of all programs and of the kernel: user, nice, system, irq, softirq and steal.
fn busy_usec(stat: &str) -> Option<u64> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let busy: u64 = [0, 1, 2, 5, 6, 7].iter().filter_map(|at| ticks.get(*at)).sum();
    Some(busy.saturating_mul(TICK_USEC))
}

/// What an attempt has used.
#[derive(Debug)]
pub(super) struct EnergyMeter {
    began: Instant,
    /// The whole cards that it has.
    cards: Vec<String>,
    /// Whether it has something else of GPUs.
    shares: bool,
    /// The counters of its cards when it began, once they were read.
    first: Option<BTreeMap<String, u64>>,
    gpu_millijoules: Option<u64>,
    /// The processors and its own CPU time at the last look.
    last: Option<(HostReading, u64)>,
    cpu_microjoules: Option<u64>,
}

impl EnergyMeter {
    /// That of an attempt that begins now.
    pub(super) fn new(slots: &[Slot], began: Instant) -> Self {
        let is_whole = |slot: &&Slot| slot.slice.is_none() && slot.device.mig.is_none();
        let cards: Vec<String> = slots.iter().filter(is_whole).map(|slot| slot.name.clone()).collect();
        Self {
            began,
            shares: cards.len() < slots.len(),
            cards,
            first: None,
            gpu_millijoules: None,
            last: None,
            cpu_microjoules: None,
        }
    }

    /// Whether it has cards whose energy is its own.
    pub(super) fn has_cards(&self) -> bool {
        !self.cards.is_empty() && !self.shares
    }

    /// Whether the counters that it began with are still to be read.
    pub(super) fn waits(&self) -> bool {
        self.has_cards() && self.first.is_none()
    }

    /// Looks at the counters of GPUs, as they were read last.
    pub(super) fn count_gpus(&mut self, gpus: &GpuMonitor) {
        let is_own = gpus.measured().is_some_and(|measured| measured >= self.began);
        if !is_own || !self.has_cards() {
            return;
        }
        let Some(now) = gpus.energy_of(&self.cards) else { return };
        let first = self.first.get_or_insert_with(|| now.clone());
        let used = now.iter().map(|(card, energy)| energy.checked_sub(*first.get(card)?));
        // A counter that is smaller than before began anew with its driver: what was counted until then stays.
        if let Some(sum) = used.sum::<Option<u64>>() {
            self.gpu_millijoules = Some(sum);
        }
    }

    /// Looks at the processors; `cpu_usec` is the CPU time of the attempt.
    pub(super) fn count_processors(&mut self, host: HostReading, cpu_usec: Option<u64>) {
        let Some(cpu_usec) = cpu_usec else { return };
        let (before, own_before) = self.last.replace((host, cpu_usec)).unwrap_or((host, cpu_usec));
        let own = cpu_usec.saturating_sub(own_before);
        // The kernel counts the host in ticks, and the task exactly.
        let all = host.cpu_usec.saturating_sub(before.cpu_usec).max(own);
        let energy = u128::from(host.microjoules.saturating_sub(before.microjoules));
        let share = (energy * u128::from(own)).checked_div(u128::from(all)).unwrap_or(0);
        let sum = self.cpu_microjoules.get_or_insert(0);
        *sum = sum.saturating_add(u64::try_from(share).unwrap_or(u64::MAX));
    }

    /// What is known so far; nothing for an attempt without GPUs on a host whose processors do not tell.
    pub(super) fn used(&self) -> Option<EnergyUse> {
        let has_gpus = self.shares || !self.cards.is_empty();
        (has_gpus || self.cpu_microjoules.is_some()).then(|| EnergyUse {
            gpu_millijoules: self.gpu_millijoules,
            gpu_shared: self.shares,
            cpu_millijoules: self.cpu_microjoules.map(|sum| sum / 1000),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(directory: &Path, zone: &str, name: &str, energy: u64) {
        let zone = directory.join(zone);
        fs::create_dir_all(&zone).unwrap();
        fs::write(zone.join("name"), format!("{name}\n")).unwrap();
        fs::write(zone.join("energy_uj"), energy.to_string()).unwrap();
        fs::write(zone.join("max_energy_range_uj"), "1000000").unwrap();
    }

    #[test]
    fn packages_are_counted_over_their_range() {
        let place = tempfile::tempdir().unwrap();
        assert!(Packages::at(place.path()).is_none());
        zone(place.path(), "intel-rapl:0", "package-0", 900_000);
        zone(place.path(), "intel-rapl:1", "package-1", 10);
        zone(place.path(), "intel-rapl:0:0", "core", 5);
        zone(place.path(), "intel-rapl:2", "psys", 5);
        let mut packages = Packages::at(place.path()).unwrap();
        assert_eq!(packages.advance(), Some(0));
        zone(place.path(), "intel-rapl:0", "package-0", 100);
        zone(place.path(), "intel-rapl:1", "package-1", 60);
        zone(place.path(), "intel-rapl:2", "psys", 500_000);
        assert_eq!(packages.advance(), Some(100_100 + 50));
        // What cannot be read now is not 0.
        fs::remove_file(place.path().join("intel-rapl:1/energy_uj")).unwrap();
        assert_eq!(packages.advance(), None);
        assert!(Packages::at(place.path()).is_none());
    }

    #[test]
    fn the_busy_time_of_a_host_is_without_its_idle_time() {
        let stat = "cpu  10 20 30 4000 500 6 7 8 0 0\ncpu0 1 1 1 1\n";
        assert_eq!(busy_usec(stat), Some((10 + 20 + 30 + 6 + 7 + 8) * 10_000));
        assert_eq!(busy_usec("intr 7"), None);
    }

    #[test]
    fn a_task_has_its_share_of_the_processors() {
        let mut meter = EnergyMeter::new(&[], Instant::now());
        assert_eq!(meter.used(), None);
        let host = |microjoules, cpu_usec| HostReading { microjoules, cpu_usec };
        meter.count_processors(host(5_000_000, 70), None);
        assert_eq!(meter.used(), None);
        meter.count_processors(host(5_000_000, 1_000_000), Some(300_000));
        assert_eq!(meter.used().unwrap().cpu_millijoules, Some(0));
        // A quarter of the time of all programs.
        meter.count_processors(host(13_000_000, 5_000_000), Some(1_300_000));
        assert_eq!(meter.used().unwrap().cpu_millijoules, Some(2_000));
        // All of it, by a clock that is finer than that of the host.
        meter.count_processors(host(14_000_000, 5_000_000), Some(1_309_000));
        assert_eq!(meter.used().unwrap().cpu_millijoules, Some(3_000));
        assert_eq!(meter.used().unwrap().gpu_millijoules, None);
    }
}
