//! NVIDIA's cards as the files of their driver show them: /proc/driver/nvidia and /dev.
//!
//! What the files do not contain (memory, compute capability, MIG names, processes on a card, NVLink) only NVML
//! reports. The formats of the files are those of the open kernel modules: `kernel-open/nvidia/nv-procfs.c` and
//! `nv-caps.c`.

use std::path::PathBuf;

use jobc_schema::gpu::Vendor;

use super::host::Host;
use super::inventory::Gpu;
use super::{drm, pci};
use jobc_nvml::{Mig, MigDevice};

/// The content of the driver's files.
#[derive(Debug, Default, PartialEq)]
pub(super) struct DriverReport {
    /// The driver's release; `None` if it is not loaded.
    pub(super) release: Option<String>,
    /// The cards, in the order of the PCI bus, which is NVML's too.
    pub(super) gpus: Vec<Gpu>,
    /// Notes for the user.
    pub(super) notes: Vec<String>,
}

/// Reads the driver's files.
pub(super) fn discover(machine: &Host) -> DriverReport {
    let release = machine.read("/proc/driver/nvidia/version").as_deref().and_then(release);
    let directories = machine.names("/proc/driver/nvidia/gpus");
    let read = |pci: &String| card(machine, pci, &machine.read(format!("{GPUS_PATH}/{pci}/information"))?);
    let mut gpus: Vec<Gpu> = directories.iter().filter_map(read).collect();
    let mut notes = vec![];
    if !machine.has("/dev/nvidiactl") {
        gpus.clear();
    }
    // In a container that was given some of the host's cards, /proc shows the others as well.
    gpus.retain(|gpu| {
        let node = gpu.minor.map(|minor| format!("/dev/nvidia{minor}")).unwrap_or_default();
        let is_there = !node.is_empty() && machine.has(&node);
        if !is_there {
            notes.push(format!("the card at {} has no node {node} here", gpu.pci.as_deref().unwrap_or("?")));
        }
        is_there
    });
    for (index, gpu) in (0..).zip(&mut gpus) {
        gpu.index = index;
    }
    if release.is_some() && !machine.has("/dev/nvidiactl") {
        notes.push(
            "NVIDIA's driver is loaded, but its nodes /dev/nvidia… do not exist: run `nvidia-modprobe -c 0 -u`, or start \
             nvidia-persistenced"
                .to_owned(),
        );
    }
    if release.is_some() && directories.is_empty() {
        notes.push("NVIDIA's driver is loaded, but drives no card".to_owned());
    }
    DriverReport { release, gpus, notes }
}

/// A directory a card, by its place on the PCI bus.
const GPUS_PATH: &str = "/proc/driver/nvidia/gpus";

/// A card from its file `information`; `None` for one that an administrator has excluded.
fn card(machine: &Host, pci: &str, information: &str) -> Option<Gpu> {
    let field = |name: &str| {
        let mut fields = information.lines().filter_map(|line| line.split_once(':'));
        fields.find_map(|(key, value)| (key.trim() == name).then(|| value.trim().to_owned()))
    };
    if field("GPU Excluded").is_some_and(|excluded| excluded == "Yes") {
        return None;
    }
    let pci = pci.to_lowercase();
    let minor = field("Device Minor").and_then(|minor| minor.parse().ok());
    // The driver writes question marks until a card was used for the first time.
    let uuid = field("GPU UUID").filter(|uuid| uuid.starts_with("GPU-") && !uuid.contains('?'));
    Some(Gpu {
        vendor: Vendor::Nvidia,
        uuid,
        name: field("Model").unwrap_or_else(|| "NVIDIA GPU".to_owned()),
        minor,
        numa_node: pci::numa_node(machine, &pci),
        nodes: nodes(machine, &pci, minor),
        mig: minor.and_then(|minor| mig_instances(machine, minor)),
        pci: Some(pci),
        ..Gpu::default()
    })
}

/// A card's own nodes: the compute node, then the existing ones of /dev/dri.
pub(super) fn nodes(machine: &Host, pci: &str, minor: Option<u32>) -> Vec<PathBuf> {
    let own = minor.map(|minor| PathBuf::from(format!("/dev/nvidia{minor}")));
    own.into_iter().filter(|node| machine.has(node)).chain(drm::nodes(machine, pci)).collect()
}

/// The MIG instances of a card, by the capabilities that open them; empty if there are none.
fn mig_instances(machine: &Host, minor: u32) -> Option<Mig> {
    let directory = format!("/proc/driver/nvidia/capabilities/gpu{minor}/mig");
    let mut devices = vec![];
    for (name, gi) in machine.numbered_names(&directory, "gi") {
        for (_, ci) in machine.numbered_names(format!("{directory}/{name}"), "ci") {
            let caps = capability_nodes(machine, minor, gi, ci);
            let index = u32::try_from(devices.len()).unwrap_or(u32::MAX);
            devices.push(MigDevice { index, uuid: None, profile: None, memory_bytes: None, gi, ci, caps });
        }
    }
    (!devices.is_empty()).then_some(Mig { enabled: true, devices })
}

/// The directory of the nodes that open MIG instances.
pub(super) const CAPS_DIRECTORY: &str = "/dev/nvidia-caps";

/// The files that name the nodes of a MIG instance: the GPU instance's, then the compute instance's.
pub(super) fn capability_files(minor: u32, gi: u32, ci: u32) -> [String; 2] {
    let directory = format!("/proc/driver/nvidia/capabilities/gpu{minor}/mig/gi{gi}");
    [format!("{directory}/access"), format!("{directory}/ci{ci}/access")]
}

/// The nodes that open a MIG instance, in the order of [`capability_files`].
pub(super) fn capability_nodes(machine: &Host, minor: u32, gi: u32, ci: u32) -> Vec<PathBuf> {
    let node = |file: String| {
        let text = machine.read(file)?;
        let minor = text.lines().find_map(|line| line.strip_prefix("DeviceFileMinor:"))?.trim();
        Some(PathBuf::from(format!("{CAPS_DIRECTORY}/nvidia-cap{minor}")))
    };
    capability_files(minor, gi, ci).into_iter().filter_map(node).collect()
}

/// The release in the text of /proc/driver/nvidia/version: `NVRM version: … Kernel Module  550.54.15  …`.
pub fn release(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with("NVRM version:"))?;
    let is_release = |word: &&str| {
        let mut parts = word.split('.');
        parts.clone().count() >= 2
            && parts.all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    line.split_whitespace().find(is_release).map(str::to_owned)
}
