//! NVIDIA's own library, queried by a separate process (see `jobc_nvml` for the reason).
//!
//! That process is `jobc-nvml`, if it was installed with this program, else this program again with the word
//! [`COMMAND`]. If it times out, it is killed and left behind.

pub(super) mod recent;
mod search;
mod smi;
pub mod watch;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use jobc_nvml::{Card, NVML_ERROR_EXIT_CODE, NvmlReport};
use jobc_schema::gpu::Vendor;

pub use jobc_nvml::{CardHealth, UsageSample};
pub use recent::Freshness;
use serde_json::Value;

use super::host::Host;
use super::inventory::{Gpu, Inventory};
pub use super::nvml_programs::COMMAND;
use super::nvml_programs::NvmlProgram;
use super::{nvidia, pci};
use jobc_sys::run_with_timeout;

/// The query process, if it is this program.
pub fn run_query_process(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    jobc_nvml::run_query_process(words)
}

/// Why NVML's report failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NvmlUnavailable {
    /// The user does not want it.
    Disabled,
    /// The failure, as text.
    Failed(String),
}

/// The report, and the program that queried NVML if it was another than this.
pub(super) struct QueryResult {
    pub(super) report: NvmlReport,
    pub(super) program: Option<PathBuf>,
    /// When it was asked for, in nanoseconds since boot; `None` if that was earlier.
    pub(super) asked_at: Option<u64>,
}

/// NVML's report on the host of `validity`: the last one if it is current enough, else NVML is asked.
pub(super) fn report(
    machine: &Host,
    freshness: Freshness,
    validity: Value,
) -> Result<QueryResult, NvmlUnavailable> {
    if let Some(result) = recent::read(machine, freshness, &validity) {
        return Ok(result);
    }
    let asked_at = recent::nanos_since_boot();
    let result = QueryResult { asked_at: Some(asked_at), ..query(machine)? };
    recent::write(machine, validity, &result);
    Ok(result)
}

/// Asks NVML; through nvidia-smi where the library cannot be loaded.
fn query(machine: &Host) -> Result<QueryResult, NvmlUnavailable> {
    let files = search::files(machine).ok_or(NvmlUnavailable::Disabled)?;
    if machine.nvml.programs.is_empty() {
        return query_in_process(&files);
    }
    let mut first = None;
    for asker in &machine.nvml.programs {
        match query_through(asker, machine, &files) {
            Ok(report) => {
                let by = asker.is_separate().then(|| asker.program().to_owned());
                return Ok(QueryResult { report, program: by, asked_at: None });
            }
            // A query that hung once would hang again.
            Err(QueryError::TimedOut(why)) => return Err(NvmlUnavailable::Failed(why)),
            Err(QueryError::Refused(why)) => {
                first.get_or_insert(why);
                break;
            }
            Err(QueryError::Failed(why)) => _ = first.get_or_insert(why),
        }
    }
    let hint = if machine.nvml.programs.iter().any(NvmlProgram::is_separate) {
        ""
    } else {
        "; put the program `jobc-nvml` next to `jobc`: it can load libraries that `jobc` cannot"
    };
    let why = format!("{}{hint}", first.unwrap_or_default());
    let (mut report, program) = smi::query(machine).ok_or_else(|| NvmlUnavailable::Failed(why.clone()))?;
    report.notes.push(format!("nvidia-smi reports NVIDIA's cards, without NVLink: {why}"));
    Ok(QueryResult { report, program: Some(program), asked_at: None })
}

fn query_in_process(files: &[PathBuf]) -> Result<QueryResult, NvmlUnavailable> {
    jobc_nvml::query(files)
        .map(|report| QueryResult { report, program: None, asked_at: None })
        .map_err(NvmlUnavailable::Failed)
}

/// Why a query process failed.
enum QueryError {
    /// It did not answer in time.
    TimedOut(String),
    /// NVML returned an error, or could not be loaded.
    Refused(String),
    /// It could not be started, or ended without an answer.
    Failed(String),
}

fn query_through(asker: &NvmlProgram, machine: &Host, files: &[PathBuf]) -> Result<NvmlReport, QueryError> {
    let timeout = machine.nvml.timeout;
    let received =
        run_with_timeout::run(asker.command().args(files), timeout).map_err(|error| match error.kind() {
            std::io::ErrorKind::TimedOut => {
                QueryError::TimedOut(format!("timed out after {} s", timeout.as_secs_f32()))
            }
            _ => QueryError::Failed(error.to_string()),
        })?;
    // The library may print other text before.
    let last = received.text.lines().last().unwrap_or_default();
    match received.status.code() {
        Some(0) => serde_json::from_str(last)
            .map_err(|error| QueryError::Failed(format!("its response cannot be read: {error}"))),
        Some(code) if code == i32::from(NVML_ERROR_EXIT_CODE) => Err(QueryError::Refused(last.to_owned())),
        Some(_) if !last.is_empty() => Err(QueryError::Failed(last.to_owned())),
        _ => Err(QueryError::Failed(format!("the query process ended with {}", received.status))),
    }
}

/// Takes the place of what the driver's files show, and adds to it what only they do; returns the NVLinks.
pub(super) fn merge_report(mut report: NvmlReport, machine: &Host, inventory: &mut Inventory) -> NvLinks {
    let links = NvLinks::new(&report.cards);
    let cards = std::mem::take(&mut report.cards).into_iter();
    let gpus = cards.map(|card| {
        let shown = inventory.gpus.iter().find(|shown| shown.pci.is_some() && shown.pci == card.pci);
        let minor = card.minor.or(shown.and_then(|shown| shown.minor));
        gpu(Card { minor, ..card }, machine)
    });
    inventory.gpus = gpus.collect();
    let driver = inventory.driver.get_or_insert_default();
    driver.version = report.driver.take().unwrap_or(std::mem::take(&mut driver.version));
    driver.cuda = report.cuda.take();
    inventory.notes.append(&mut report.notes);
    links
}

/// A card with what its files contain.
fn gpu(card: Card, machine: &Host) -> Gpu {
    let Card { index, uuid, name, brand, pci, minor, memory_bytes, memory_used, compute_capability, .. } =
        card;
    let place = pci.as_deref().unwrap_or_default();
    let mut gpu = Gpu {
        vendor: Vendor::Nvidia,
        numa_node: pci::numa_node(machine, place),
        nodes: nvidia::nodes(machine, place, minor),
        mig: card.mig,
        processes: card.processes,
        state: card.state,
        links: vec![],
        index,
        uuid,
        name,
        brand,
        pci,
        minor,
        memory_bytes,
        memory_used,
        compute_capability,
    };
    for instance in gpu.mig.iter_mut().flat_map(|mig| &mut mig.devices) {
        instance.caps = nvidia::capability_nodes(machine, minor.unwrap_or(index), instance.gi, instance.ci);
    }
    for process in &mut gpu.processes {
        process.name = machine.read_trimmed(format!("/proc/{}/comm", process.pid));
    }
    gpu
}

/// The NVLinks between cards.
#[derive(Debug, Default, PartialEq)]
pub(super) struct NvLinks {
    /// For each card by index: the index of the card at the other end of each link, `None` for a switch.
    ends: Vec<(u32, Vec<Option<u32>>)>,
}

impl NvLinks {
    fn new(cards: &[Card]) -> Self {
        let at = |place: &Option<String>| {
            let place = place.as_ref()?;
            cards.iter().find(|card| card.pci.as_ref() == Some(place)).map(|card| card.index)
        };
        let ends = cards.iter().map(|card| (card.index, card.links.iter().map(at).collect()));
        Self { ends: ends.collect() }
    }

    /// How many links lie between two cards: those that end at the other, or else those that both have to switches.
    pub(super) fn between(&self, one: u32, other: u32) -> u32 {
        let count = |card: u32, end: Option<u32>| {
            let links = self.ends.iter().filter(|(index, _)| *index == card).flat_map(|(_, ends)| ends);
            u32::try_from(links.filter(|there| **there == end).count()).unwrap_or(u32::MAX)
        };
        match count(one, Some(other)) {
            0 => count(one, None).min(count(other, None)),
            direct => direct,
        }
    }
}
