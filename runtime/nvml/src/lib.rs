//! What NVIDIA's own library says of its cards, for whoever cannot load it or would rather not.
//!
//! NVML is somebody else's code that talks to a kernel driver: it can take seconds to wake cards up, hang where the driver
//! does, and crash. So a process of its own asks it and prints what it says, a line of JSON; this crate has both the asking
//! and the types of that line. The process is `jobc` itself, or the program `jobc-nvml`: a `jobc` that is linked statically
//! can load no library of another C library, and this small program, linked as most are, can.

mod ask;
mod watch;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

/// The exit code of a process that asked and was told why nothing is said; the reason stands in its last line.
///
/// Any other failure is not NVML's: the process could not be started, or did not live to hear an answer.
pub const REFUSED: u8 = 3;

/// What NVML says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Said {
    /// The driver's release.
    pub driver: Option<String>,
    /// The newest CUDA that the driver runs.
    pub cuda: Option<String>,
    /// The cards, in its order.
    pub cards: Vec<Card>,
    /// What a person should know.
    pub notes: Vec<String>,
}

/// A card, without what only files tell: NUMA node, nodes, ways to others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// NVML's number of it.
    pub index: u32,
    /// `GPU-…`.
    pub uuid: Option<String>,
    /// As the driver calls it, `NVIDIA H200`.
    pub name: String,
    /// The line of products it belongs to, in the words of `NVIDIA_REQUIRE_…`.
    pub brand: Option<String>,
    /// Its place on the PCI bus as the kernel writes it, `0000:3b:00.0`.
    pub pci: Option<String>,
    /// N of /dev/nvidiaN.
    pub minor: Option<u32>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Bytes in use.
    pub memory_used: Option<u64>,
    /// CUDA compute capability.
    pub compute_capability: Option<(u32, u32)>,
    /// Multi-Instance GPU: absent where the card has none.
    pub mig: Option<Mig>,
    /// Who uses it, as far as this user may know.
    pub processes: Vec<Process>,
    /// The far ends of its NVLinks: places on the PCI bus, nothing for one that is not told.
    pub links: Vec<Option<String>>,
}

/// Multi-Instance GPU of a card.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mig {
    /// Whether the card is cut up: then only its instances can be used.
    pub enabled: bool,
    /// Its instances.
    pub devices: Vec<MigDevice>,
}

/// A MIG instance: a GPU instance with a compute instance in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MigDevice {
    /// Its number on the card.
    pub index: u32,
    /// `MIG-…`, where NVML tells.
    pub uuid: Option<String>,
    /// `1g.10gb`, where NVML tells.
    pub profile: Option<String>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// The GPU instance.
    pub gi: u32,
    /// The compute instance.
    pub ci: u32,
    /// The nodes of /dev/nvidia-caps that open it, which files tell and NVML does not.
    pub caps: Vec<PathBuf>,
}

/// A process that uses a card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its number on the machine.
    pub pid: u32,
    /// The program's name, which files tell and NVML does not.
    pub name: Option<String>,
    /// Bytes of the card.
    pub memory_bytes: Option<u64>,
}

/// How busy cards are now, and with whom.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// Each card's UUID and the percent of the time in which it was busy, where it tells.
    pub busy: Vec<(String, Option<u8>)>,
    /// A process, the UUID of its card, and the bytes of it that it has.
    pub processes: Vec<(u32, String, Option<u64>)>,
}

/// Loads the first of these files that is NVML, and asks all there is to ask.
///
/// # Errors
///
/// Why it says nothing, in words.
pub fn ask(files: &[impl AsRef<Path>]) -> Result<Said, String> {
    ask::ask(files)
}

/// The process that asks: prints what NVML says in a line, or why it says nothing ([`REFUSED`]).
///
/// `words` are the files to try for the library. With `--watch` before them it answers for each byte that it reads, and
/// tells what changes from moment to moment ([`Moment`]) alone.
pub fn answer(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut files: Vec<PathBuf> = words.into_iter().map(PathBuf::from).collect();
    if files.first().is_some_and(|word| word.as_os_str() == "--watch") {
        files.remove(0);
        return watch::answer(&files);
    }
    let (text, code) = match ask::ask(&files) {
        Ok(said) => (serde_json::to_string(&said).unwrap_or_default(), ExitCode::SUCCESS),
        Err(why) => (why, ExitCode::from(REFUSED)),
    };
    // Who asked may have stopped listening.
    let _ = writeln!(std::io::stdout(), "{text}");
    code
}
