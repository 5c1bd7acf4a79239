//! The report of the process that queries NVML: the types of its line of JSON, and its exit code if it has nothing to
//! report.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The exit code of a query process to which NVML gave an error; the reason is in its last line.
///
/// Any other failure is not NVML's: the process could not be started, or exited before it got a response.
pub const NVML_ERROR_EXIT_CODE: u8 = 3;

/// NVML's report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NvmlReport {
    /// The driver's release.
    pub driver: Option<String>,
    /// The newest CUDA that the driver runs.
    pub cuda: Option<String>,
    /// The cards, in its order.
    pub cards: Vec<Card>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// A card, without what only files contain: NUMA node, device nodes, links to others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// NVML's number of it.
    pub index: u32,
    /// `GPU-…`.
    pub uuid: Option<String>,
    /// As the driver calls it, `NVIDIA H200`.
    pub name: String,
    /// Its product line, as in `NVIDIA_REQUIRE_…`.
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
    /// Multi-Instance GPU: absent if the card has none.
    pub mig: Option<Mig>,
    /// The processes that use it, if visible to this user.
    pub processes: Vec<Process>,
    /// The remote ends of its NVLinks: PCI addresses, `None` for an unknown one.
    pub links: Vec<Option<String>>,
    /// Temperature, power and settings; unknown to an older program.
    #[serde(default)]
    pub state: CardState,
}

/// The current values of a card that `nvidia-smi` shows. Values that the card or the driver does not report are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardState {
    /// Temperature of the chip in degrees Celsius.
    pub temperature: Option<u32>,
    /// Speed of the fan in percent of the maximum; absent for cards that the case cools.
    pub fan_percent: Option<u32>,
    /// Power draw in milliwatts.
    pub power_milliwatts: Option<u32>,
    /// The limit of the power draw in milliwatts that is enforced.
    pub power_limit_milliwatts: Option<u32>,
    /// Clock of the processors in MHz.
    pub graphics_clock_mhz: Option<u32>,
    /// Clock of the memory in MHz.
    pub memory_clock_mhz: Option<u32>,
    /// Whether the memory corrects errors.
    pub ecc: Option<bool>,
    /// Errors since the driver was loaded that could not be corrected.
    pub ecc_uncorrected_errors: Option<u64>,
    /// The compute mode: `Default`, `Exclusive_Thread`, `Prohibited` or `Exclusive_Process`.
    pub compute_mode: Option<String>,
    /// Whether the driver stays loaded without a client.
    pub persistence: Option<bool>,
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
    /// `MIG-…`, if NVML reports it.
    pub uuid: Option<String>,
    /// `1g.10gb`, if NVML reports it.
    pub profile: Option<String>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// The GPU instance.
    pub gi: u32,
    /// The compute instance.
    pub ci: u32,
    /// Its nodes in /dev/nvidia-caps, from files; NVML does not report them.
    pub caps: Vec<PathBuf>,
}

/// A process that uses a card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its number on the host.
    pub pid: u32,
    /// The program's name, from files; NVML does not report it.
    pub name: Option<String>,
    /// Bytes of the card.
    pub memory_bytes: Option<u64>,
}

/// Current utilization and energy of the cards, and the processes that use them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageSample {
    /// Each card's UUID and its utilization in percent of the time, if reported.
    pub busy: Vec<(String, Option<u8>)>,
    /// A process, the UUID of its card, and the bytes of it that it has.
    pub processes: Vec<(u32, String, Option<u64>)>,
    /// Each card's UUID and what may be wrong with it; an older program does not say.
    #[serde(default)]
    pub health: Vec<(String, CardHealth)>,
    /// The UUIDs of the cards that count their energy, and millijoules since the driver was loaded.
    #[serde(default)]
    pub energy: Vec<(String, u64)>,
}

/// What may be wrong with a card. Values that the card or the driver does not report are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CardHealth {
    /// NVML's number of it.
    pub index: u32,
    /// The errors that the driver has reported since the last sample, by their numbers in NVIDIA's list (XID).
    pub xids: Vec<u64>,
    /// Errors of its memory that could not be corrected, since the driver was loaded.
    pub ecc_errors: Option<u64>,
    /// Errors of its NVLinks, since the driver was loaded.
    pub nvlink_errors: Option<u64>,
    /// Why its clocks are reduced, but for the usual power limit.
    pub slowdown: Option<String>,
    /// Power draw in milliwatts.
    pub power: Option<u32>,
    /// The limit of the power draw in milliwatts.
    pub power_limit: Option<u32>,
}
