//! NVIDIA's own library, asked by a process of its own.
//!
//! NVML is somebody else's code that talks to a kernel driver: it can take seconds to wake cards up, hang where the driver
//! does, and crash. So this program starts itself again with the word [`COMMAND`]; that process loads the library, asks and
//! prints. One that does not answer in time is killed and left behind.

pub(crate) mod library;
mod search;
mod smi;
pub(crate) mod watch;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use serde::{Deserialize, Serialize};

use super::{Gpu, Inventory, Machine, nvidia, pci};
use crate::timed;

/// The word after the program's name that makes it ask NVML; the files to try for the library follow.
pub const COMMAND: &str = "gpu-nvml";

/// What NVML says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Said {
    /// The driver's release.
    pub(crate) driver: Option<String>,
    /// The newest CUDA that the driver runs.
    pub(crate) cuda: Option<String>,
    /// The cards, without what only files tell: NUMA node, nodes, links.
    pub(crate) gpus: Vec<Gpu>,
    /// Of each card the far ends of its NVLinks: places on the PCI bus, nothing for one that is not told.
    pub(crate) links: Vec<Vec<Option<String>>>,
    /// What a person should know.
    pub(crate) notes: Vec<String>,
}

/// Why NVML says nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Silence {
    /// The user does not want it.
    NotAsked,
    /// It cannot, in words.
    Because(String),
}

/// Asks NVML; through nvidia-smi where the library cannot be loaded.
pub(super) fn ask(machine: &Machine) -> Result<Said, Silence> {
    let files = search::files(machine).ok_or(Silence::NotAsked)?;
    match ask_library(machine, &files) {
        // What hangs once would hang again.
        Err(Silence::Because(why)) if !why.starts_with(NO_ANSWER) => match smi::ask(machine) {
            Some(mut said) => {
                said.notes.push(format!("nvidia-smi tells of NVIDIA's cards, and nothing of NVLink: {why}"));
                Ok(said)
            }
            None => Err(Silence::Because(why)),
        },
        answer => answer,
    }
}

/// How a silence begins that lasted too long.
const NO_ANSWER: &str = "no answer";

fn ask_library(machine: &Machine, files: &[PathBuf]) -> Result<Said, Silence> {
    let Some((program, words)) = machine.nvml.asker.split_first() else {
        return library::ask(files).map_err(Silence::Because);
    };
    let mut command = Command::new(program);
    command.args(words).args(files);
    let patience = machine.nvml.patience;
    let heard = timed::run(&mut command, patience).map_err(|error| {
        Silence::Because(match error.kind() {
            std::io::ErrorKind::TimedOut => format!("{NO_ANSWER} in {} s", patience.as_secs_f32()),
            _ => error.to_string(),
        })
    })?;
    // The library may print something of its own before.
    let last = heard.text.lines().last().unwrap_or_default();
    if heard.status.success() {
        serde_json::from_str(last)
            .map_err(|error| Silence::Because(format!("its answer cannot be read: {error}")))
    } else if heard.status.code().is_some() && !last.is_empty() {
        Err(Silence::Because(last.to_owned()))
    } else {
        Err(Silence::Because(format!("the process that asked it ended with {}", heard.status)))
    }
}

/// The process that asks: prints what NVML says in a line, or why it says nothing.
///
/// With `--watch` before the files it does so for each byte that it reads, and tells what changes from moment to moment
/// ([`watch::Moment`]) alone.
pub fn answer(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut files: Vec<PathBuf> = words.into_iter().map(PathBuf::from).collect();
    let watched = files.first().is_some_and(|word| word.as_os_str() == "--watch");
    if watched {
        files.remove(0);
        return watch::answer(&files);
    }
    let (text, code) = match library::ask(&files) {
        Ok(said) => (serde_json::to_string(&said).unwrap_or_default(), ExitCode::SUCCESS),
        Err(why) => (why, ExitCode::FAILURE),
    };
    // Who asked may have stopped listening.
    let _ = writeln!(std::io::stdout(), "{text}");
    code
}

impl Said {
    /// Takes the place of what the driver's files show, and adds to it what only they do; returns the NVLinks.
    pub(super) fn write_into(mut self, machine: &Machine, inventory: &mut Inventory) -> NvLinks {
        let links = NvLinks::new(&self.gpus, &self.links);
        for gpu in &mut self.gpus {
            let shown = inventory.gpus.iter().find(|shown| shown.pci.is_some() && shown.pci == gpu.pci);
            let place = gpu.pci.as_deref().unwrap_or_default();
            gpu.minor = gpu.minor.or(shown.and_then(|shown| shown.minor));
            gpu.numa_node = pci::numa_node(machine, place);
            gpu.nodes = nvidia::nodes(machine, place, gpu.minor);
            for instance in gpu.mig.iter_mut().flat_map(|mig| &mut mig.devices) {
                let minor = gpu.minor.unwrap_or(gpu.index);
                instance.caps = nvidia::caps(machine, minor, instance.gi, instance.ci);
            }
            for process in &mut gpu.processes {
                process.name = machine.word(format!("/proc/{}/comm", process.pid));
            }
        }
        let driver = inventory.driver.get_or_insert_default();
        driver.version = self.driver.take().unwrap_or(std::mem::take(&mut driver.version));
        driver.cuda = self.cuda.take();
        inventory.gpus = self.gpus;
        inventory.notes.append(&mut self.notes);
        links
    }
}

/// The NVLinks between cards.
#[derive(Debug, Default, PartialEq)]
pub(super) struct NvLinks {
    /// Of each card by its index: the other card's index at the end of each link, nothing for a switch.
    ends: Vec<(u32, Vec<Option<u32>>)>,
}

impl NvLinks {
    fn new(gpus: &[Gpu], links: &[Vec<Option<String>>]) -> Self {
        let card = |place: &Option<String>| {
            let place = place.as_ref()?;
            gpus.iter().find(|gpu| gpu.pci.as_ref() == Some(place)).map(|gpu| gpu.index)
        };
        let ends = gpus.iter().zip(links).map(|(gpu, ends)| (gpu.index, ends.iter().map(card).collect()));
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
