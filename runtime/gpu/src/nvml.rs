//! NVIDIA's own library, queried by a separate process (see `jobc_nvml` for the reason).
//!
//! That process is `jobc-nvml`, if it was installed with this program, else this program again with the word
//! [`COMMAND`]. If it times out, it is killed and left behind.

mod search;
mod smi;
pub mod watch;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use jobc_nvml::{Card, REFUSED, Said};
use jobc_schema::gpu::Vendor;

pub use jobc_nvml::Moment;

use super::askers::Asker;
pub use super::askers::COMMAND;
use super::inventory::{Gpu, Inventory};
use super::machine::Machine;
use super::{nvidia, pci};
use jobc_sys::timed;

/// The query process, if it is this program.
pub fn answer(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    jobc_nvml::answer(words)
}

/// Why there is no report of NVML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Silence {
    /// The user does not want it.
    NotAsked,
    /// The failure, as text.
    Because(String),
}

/// The report, and the program that queried NVML if it was another than this.
pub(super) struct Answer {
    pub(super) said: Said,
    pub(super) by: Option<PathBuf>,
}

/// Asks NVML; through nvidia-smi where the library cannot be loaded.
pub(super) fn ask(machine: &Machine) -> Result<Answer, Silence> {
    let files = search::files(machine).ok_or(Silence::NotAsked)?;
    if machine.nvml.askers.is_empty() {
        return by_nobody_else(&files);
    }
    let mut first = None;
    for asker in &machine.nvml.askers {
        match ask_through(asker, machine, &files) {
            Ok(said) => {
                let by = asker.is_other().then(|| asker.program().to_owned());
                return Ok(Answer { said, by });
            }
            // What hangs once would hang again.
            Err(Unheard::Late(why)) => return Err(Silence::Because(why)),
            Err(Unheard::Refused(why)) => {
                first.get_or_insert(why);
                break;
            }
            Err(Unheard::Lost(why)) => _ = first.get_or_insert(why),
        }
    }
    let hint = if machine.nvml.askers.iter().any(Asker::is_other) {
        ""
    } else {
        "; put the program `jobc-nvml` next to `jobc`: it can load libraries that `jobc` cannot"
    };
    let why = format!("{}{hint}", first.unwrap_or_default());
    let (mut said, program) = smi::ask(machine).ok_or_else(|| Silence::Because(why.clone()))?;
    said.notes.push(format!("nvidia-smi reports NVIDIA's cards, without NVLink: {why}"));
    Ok(Answer { said, by: Some(program) })
}

fn by_nobody_else(files: &[PathBuf]) -> Result<Answer, Silence> {
    jobc_nvml::ask(files).map(|said| Answer { said, by: None }).map_err(Silence::Because)
}

/// Why there is no response of a query process.
enum Unheard {
    /// It did not answer in time.
    Late(String),
    /// NVML returned an error, or could not be loaded.
    Refused(String),
    /// It could not be started, or ended without an answer.
    Lost(String),
}

fn ask_through(asker: &Asker, machine: &Machine, files: &[PathBuf]) -> Result<Said, Unheard> {
    let patience = machine.nvml.patience;
    let heard = timed::run(asker.command().args(files), patience).map_err(|error| match error.kind() {
        std::io::ErrorKind::TimedOut => {
            Unheard::Late(format!("timed out after {} s", patience.as_secs_f32()))
        }
        _ => Unheard::Lost(error.to_string()),
    })?;
    // The library may print other text before.
    let last = heard.text.lines().last().unwrap_or_default();
    match heard.status.code() {
        Some(0) => serde_json::from_str(last)
            .map_err(|error| Unheard::Lost(format!("its response cannot be read: {error}"))),
        Some(code) if code == i32::from(REFUSED) => Err(Unheard::Refused(last.to_owned())),
        Some(_) if !last.is_empty() => Err(Unheard::Lost(last.to_owned())),
        _ => Err(Unheard::Lost(format!("the query process ended with {}", heard.status))),
    }
}

/// Takes the place of what the driver's files show, and adds to it what only they do; returns the NVLinks.
pub(super) fn write(mut said: Said, machine: &Machine, inventory: &mut Inventory) -> NvLinks {
    let links = NvLinks::new(&said.cards);
    let cards = std::mem::take(&mut said.cards).into_iter();
    let gpus = cards.map(|card| {
        let shown = inventory.gpus.iter().find(|shown| shown.pci.is_some() && shown.pci == card.pci);
        let minor = card.minor.or(shown.and_then(|shown| shown.minor));
        gpu(Card { minor, ..card }, machine)
    });
    inventory.gpus = gpus.collect();
    let driver = inventory.driver.get_or_insert_default();
    driver.version = said.driver.take().unwrap_or(std::mem::take(&mut driver.version));
    driver.cuda = said.cuda.take();
    inventory.notes.append(&mut said.notes);
    links
}

/// A card with what its files contain.
fn gpu(card: Card, machine: &Machine) -> Gpu {
    let Card { index, uuid, name, brand, pci, minor, memory_bytes, memory_used, compute_capability, .. } =
        card;
    let place = pci.as_deref().unwrap_or_default();
    let mut gpu = Gpu {
        vendor: Vendor::Nvidia,
        numa_node: pci::numa_node(machine, place),
        nodes: nvidia::nodes(machine, place, minor),
        mig: card.mig,
        processes: card.processes,
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
        instance.caps = nvidia::caps(machine, minor.unwrap_or(index), instance.gi, instance.ci);
    }
    for process in &mut gpu.processes {
        process.name = machine.word(format!("/proc/{}/comm", process.pid));
    }
    gpu
}

/// The NVLinks between cards.
#[derive(Debug, Default, PartialEq)]
pub(super) struct NvLinks {
    /// Of each card by its index: the other card's index at the end of each link, nothing for a switch.
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
