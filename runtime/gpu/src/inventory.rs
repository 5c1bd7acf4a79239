//! The GPUs of a host, in the types that its producers and its users share.

use std::path::PathBuf;

use jobc_nvml::{CardState, Mig, MigDevice, Process};
use jobc_schema::gpu::Vendor;
use serde::{Deserialize, Serialize};

/// The GPUs of this host. A host without GPUs is normal: everything is empty then.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Inventory {
    /// NVIDIA's driver, if it is loaded.
    pub driver: Option<Driver>,
    /// The cards, NVIDIA's first, then by index.
    pub gpus: Vec<Gpu>,
    /// Where the knowledge of NVIDIA's cards comes from.
    pub source: Source,
    /// The program that queried NVML, if it was not this one: `jobc-nvml` or nvidia-smi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<PathBuf>,
    /// When NVML was asked for this, in nanoseconds since boot; `None` if its last report was used.
    #[serde(skip)]
    pub asked_at: Option<u64>,
    /// How many cards and MIG instances the device cgroup of this process denies; they are not in the list.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub denied: usize,
    /// Notes for the user, a line each: a driver without nodes, a library that does not load.
    pub notes: Vec<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// NVIDIA's driver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Driver {
    /// Its release, `550.54.15`.
    pub version: String,
    /// The newest CUDA version that it supports, `12.4`, if NVML reports it.
    pub cuda: Option<String>,
}

/// Where the knowledge of NVIDIA's cards comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// No NVIDIA driver is loaded.
    #[default]
    None,
    /// Files of /proc/driver/nvidia and /dev: no memory, no MIG names.
    Proc,
    /// NVML, the driver's own library.
    Nvml,
}

/// A card.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Gpu {
    /// Its vendor.
    pub vendor: Vendor,
    /// Its number among the vendor's cards, in the order of the PCI bus as the vendor's tools count.
    pub index: u32,
    /// `GPU-…`, if known.
    pub uuid: Option<String>,
    /// As the driver calls it, `NVIDIA H200`.
    pub name: String,
    /// Its product line, as in `NVIDIA_REQUIRE_…`: `tesla`, `geforce`, `nvidia`.
    #[serde(default)]
    pub brand: Option<String>,
    /// Its place on the PCI bus, `0000:3b:00.0`, in lower case.
    pub pci: Option<String>,
    /// The number of its node: N of /dev/nvidiaN, renderD(128+N) and so on; differs from the index at times.
    pub minor: Option<u32>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// CUDA compute capability.
    pub compute_capability: Option<(u32, u32)>,
    /// Its NUMA node.
    pub numa_node: Option<u32>,
    /// The device nodes of this card, without those that all cards share: the compute node first, then those of
    /// /dev/dri. They have the names that programs use; [`Host::path`](super::Host::path) gives their paths.
    pub nodes: Vec<PathBuf>,
    /// Multi-Instance GPU: absent if the card does not support it, or if it is unknown.
    pub mig: Option<Mig>,
    /// Its connections to other cards of the same inventory.
    pub links: Vec<Link>,
    /// The processes that use it now, if visible to this user.
    pub processes: Vec<Process>,
    /// Bytes in use, if known.
    pub memory_used: Option<u64>,
    /// Temperature, power and settings, as far as NVIDIA's library reports them.
    #[serde(default)]
    pub state: CardState,
}

/// How a card reaches another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The other card's index.
    pub to: u32,
    /// The type of the connection, the closest one.
    pub by: LinkType,
}

/// The way between two cards, nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkType {
    /// NVLink, or AMD's XGMI, with the number of links.
    Nvlink(u32),
    /// One PCIe switch.
    Switch,
    /// Several PCIe switches.
    Switches,
    /// A PCIe host bridge.
    Bridge,
    /// Within a NUMA node.
    Node,
    /// Between NUMA nodes.
    System,
}

/// One device that can be assigned to a task: a whole card or a MIG instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DeviceId {
    /// The card's vendor.
    pub vendor: Vendor,
    /// The card's index.
    pub gpu: u32,
    /// The MIG instance's index on the card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mig: Option<u32>,
}

impl Inventory {
    /// The card of a device.
    pub fn gpu(&self, device: DeviceId) -> Option<&Gpu> {
        self.gpus.iter().find(|gpu| gpu.vendor == device.vendor && gpu.index == device.gpu)
    }

    /// The MIG instance of a device that is one.
    pub fn mig(&self, device: DeviceId) -> Option<&MigDevice> {
        let mig = device.mig?;
        self.gpu(device)?.mig.as_ref()?.devices.iter().find(|instance| instance.index == mig)
    }

    /// Everything that can be given: whole cards, and of cards that are cut up their instances.
    pub fn devices(&self) -> Vec<DeviceId> {
        let mut devices = Vec::new();
        for gpu in &self.gpus {
            let whole = DeviceId { vendor: gpu.vendor, gpu: gpu.index, mig: None };
            match gpu.mig.as_ref().filter(|mig| mig.enabled) {
                Some(mig) => {
                    devices.extend(mig.devices.iter().map(|mig| DeviceId { mig: Some(mig.index), ..whole }));
                }
                None => devices.push(whole),
            }
        }
        devices
    }

    /// The name of a device everywhere else: `GPU-…` or `MIG-…`, else its number, `0` or `0:1`.
    pub fn name(&self, device: DeviceId) -> String {
        let uuid = match device.mig {
            Some(_) => self.mig(device).and_then(|mig| mig.uuid.clone()),
            None => self.gpu(device).and_then(|gpu| gpu.uuid.clone()),
        };
        uuid.unwrap_or_else(|| match device.mig {
            Some(mig) => format!("{}:{mig}", device.gpu),
            None => device.gpu.to_string(),
        })
    }
}
