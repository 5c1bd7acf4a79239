//! What the process that asks NVML reports: the types of its line of JSON, and its exit code where it has nothing to report.

use std::path::PathBuf;

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
