//! NVML's last report, so that one start asks once and the next start need not ask for what cannot have changed.
//!
//! The report is a file of this user in memory, next to the jobs' state. It holds for the boot, the driver, the cards
//! and the allowed devices that it was made for. Cards that MIG partitions are asked each time.

use std::fs::{DirBuilder, File};
use std::io::Read as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jobc_nvml::{Card, CardState, NvmlReport};
use jobc_sys::write_atomic::{Durability, write_atomic};
use rustix::fs::{Mode, OFlags};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::QueryResult;
use crate::host::Host;
use crate::nvidia::DriverReport;
use crate::nvml_programs::NvmlProgram;

/// How long names, UUIDs, numbers and sizes of cards hold.
const FACTS_LIFETIME: Duration = Duration::from_secs(10);

/// How long the rest holds for the command that asked, whose supervisor is another process.
const OWN_LIFETIME: Duration = Duration::from_secs(2);

const MODE: u32 = 0o600;

/// More than any host's report.
const MAX_BYTES: u64 = 1 << 20;

/// How current NVML's report must be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Freshness {
    /// It is asked for now.
    #[default]
    Now,
    /// The one that the same command asked for at this time, in nanoseconds since boot, if that was a moment ago.
    AskedAt(u64),
    /// What cannot change within seconds is enough: no processes, memory in use or temperatures.
    Facts,
}

impl Freshness {
    /// For the supervisor of a command that asked at this time, or not at all.
    pub fn of_command(asked_at: Option<u64>) -> Self {
        asked_at.map_or(Self::Now, Self::AskedAt)
    }
}

/// The file.
#[derive(Debug, Serialize, Deserialize)]
struct RecentReport {
    asked_at: u64,
    /// What it holds for.
    host: Value,
    program: Option<PathBuf>,
    report: NvmlReport,
}

/// What a report holds for: if any of it is another, NVML is asked.
pub(in super::super) fn validity(machine: &Host, shown: &DriverReport) -> Value {
    let nodes = shown.gpus.iter().filter_map(|gpu| gpu.nodes.first());
    json!({
        "boot": std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim(),
        "root": machine.root(),
        "library": machine.nvml.library,
        "programs": machine.nvml.programs.iter().map(NvmlProgram::program).collect::<Vec<_>>(),
        "driver": shown.release,
        "cards": shown.gpus,
        "allowed": nodes.map(|node| !machine.denies(node)).collect::<Vec<_>>(),
    })
}

/// The last report, if it is current enough.
pub(super) fn read(machine: &Host, freshness: Freshness, host: &Value) -> Option<QueryResult> {
    if freshness == Freshness::Now {
        return None;
    }
    let text = read_own(machine.recent.as_deref()?)?;
    let RecentReport { asked_at, host: of, program, mut report } = serde_json::from_slice(&text).ok()?;
    let age = Duration::from_nanos(nanos_since_boot().checked_sub(asked_at)?);
    let is_current = match freshness {
        Freshness::Now => false,
        Freshness::AskedAt(time) => time == asked_at && age <= OWN_LIFETIME,
        Freshness::Facts => age <= FACTS_LIFETIME && !report.cards.iter().any(is_partitioned),
    };
    if !is_current || of != *host {
        return None;
    }
    if freshness == Freshness::Facts {
        for card in &mut report.cards {
            (card.processes, card.memory_used, card.state) = (vec![], None, CardState::default());
        }
    }
    Some(QueryResult { report, program, asked_at: None })
}

/// Whether MIG cuts a card up: its instances come and go, and are not always seen in files.
fn is_partitioned(card: &Card) -> bool {
    card.mig.as_ref().is_some_and(|mig| mig.enabled)
}

/// Keeps a report that was just received.
pub(super) fn write(machine: &Host, host: Value, result: &QueryResult) {
    let (Some(path), Some(asked_at)) = (&machine.recent, result.asked_at) else { return };
    let (program, report) = (result.program.clone(), result.report.clone());
    let Ok(text) = serde_json::to_vec(&RecentReport { asked_at, host, program, report }) else { return };
    if let Some(parent) = path.parent() {
        let _ = DirBuilder::new().mode(0o700).create(parent);
    }
    // Without the file, the next command asks.
    let _ = write_atomic(path, &text, MODE, Durability::Rename);
}

/// A file's content, if it is this user's and nobody else may read or write it.
fn read_own(path: &Path) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let status = file.metadata().ok()?;
    let is_own = status.is_file()
        && status.uid() == rustix::process::geteuid().as_raw()
        && status.mode() & 0o7777 == MODE
        && status.len() <= MAX_BYTES;
    let mut text = vec![];
    file.take(MAX_BYTES).read_to_end(&mut text).ok().filter(|_| is_own)?;
    Some(text)
}

/// Nanoseconds since boot, by a clock that cannot be set.
pub(super) fn nanos_since_boot() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or_default()
}

#[cfg(test)]
mod tests;
