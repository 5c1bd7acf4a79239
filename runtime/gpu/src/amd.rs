//! AMD's cards as their driver shows them: the topology of /sys/class/kfd, /dev/kfd and /dev/dri.
//!
//! A node of the topology is a processor or a card; a card has SIMD units
//! (`drivers/gpu/drm/amd/amdkfd/kfd_topology.c`). Names and memory are in the PCI device's directory
//! (Documentation/gpu/amdgpu/driver-misc.rst).

use std::collections::BTreeMap;

use jobc_schema::gpu::Vendor;

use super::host::Host;
use super::inventory::Gpu;
use super::{drm, pci};
use jobc_nvml::Process;

const KFD_PATH: &str = "/sys/class/kfd/kfd";

/// An XGMI link between AMD cards in the topology (`CRAT_IOLINK_TYPE_XGMI`).
const XGMI_LINK_TYPE: u64 = 11;

/// The cards, in the order of the topology, which ROCm's tools count by.
pub(super) fn discover(machine: &Host) -> Vec<Gpu> {
    let mut cards: Vec<(u32, Gpu)> = machine
        .numbered_names(format!("{KFD_PATH}/topology/nodes"), "")
        .into_iter()
        .filter_map(|(_, node)| card(machine, node).map(|gpu| (node, gpu)))
        .collect();
    for (index, (_, gpu)) in (0..).zip(&mut cards) {
        gpu.index = index;
    }
    let nodes: Vec<u32> = cards.iter().map(|(node, _)| *node).collect();
    let mut gpus: Vec<Gpu> = cards.into_iter().map(|(_, gpu)| gpu).collect();
    let of = |index: u32| nodes.get(index as usize).copied();
    pci::set_links(machine, &mut gpus, &|one, other| {
        of(one).zip(of(other)).map_or(0, |(one, other)| xgmi_links(machine, one, other))
    });
    gpus
}

fn properties(machine: &Host, file: &str) -> BTreeMap<String, u64> {
    let text = machine.read(file).unwrap_or_default();
    let property = |line: &str| {
        let (name, value) = line.split_once(' ')?;
        Some((name.to_owned(), value.trim().parse().ok()?))
    };
    text.lines().filter_map(property).collect()
}

fn card(machine: &Host, node: u32) -> Option<Gpu> {
    let directory = format!("{KFD_PATH}/topology/nodes/{node}");
    let properties = properties(machine, &format!("{directory}/properties"));
    let property = |name: &str| properties.get(name).copied().filter(|value| *value != 0);
    property("simd_count")?;
    // Bus, device and function of the PCI address in one number (`kfd_topology.c`, location_id).
    let location = properties.get("location_id").copied()?;
    let domain = properties.get("domain").copied().unwrap_or(0);
    let (bus, device, function) = (location >> 8 & 0xff, location >> 3 & 0x1f, location & 7);
    let pci = format!("{domain:04x}:{bus:02x}:{device:02x}.{function}");
    let of_device = |name: &str| format!("/sys/bus/pci/devices/{pci}/{name}");
    let name = machine.read_trimmed(of_device("product_name")).unwrap_or_else(|| {
        let device = machine.read_trimmed(of_device("device")).unwrap_or_default();
        format!("AMD GPU {device}").trim_end().to_owned()
    });
    let minor = property("drm_render_minor").and_then(|minor| u32::try_from(minor).ok()?.checked_sub(128));
    Some(Gpu {
        vendor: Vendor::Amd,
        // As ROCR_VISIBLE_DEVICES takes it.
        uuid: property("unique_id").map(|id| format!("GPU-{id:016x}")),
        name,
        minor: minor.or_else(|| drm::minor(machine, &pci)),
        memory_bytes: machine.read_number(of_device("mem_info_vram_total")),
        numa_node: pci::numa_node(machine, &pci),
        nodes: drm::nodes(machine, &pci),
        processes: processes(machine, machine.read_number(format!("{directory}/gpu_id"))),
        memory_used: machine.read_number(of_device("mem_info_vram_used")),
        pci: Some(pci),
        ..Gpu::default()
    })
}

/// The processes on a card: a directory per process, with its bytes on each card (`kfd_process.c`).
fn processes(machine: &Host, gpu: Option<u64>) -> Vec<Process> {
    let Some(gpu) = gpu else { return vec![] };
    let process = |(name, pid): (String, u32)| {
        let memory = machine.read_number(format!("{KFD_PATH}/proc/{name}/vram_{gpu}"))?;
        let program = machine.read_trimmed(format!("/proc/{pid}/comm"));
        (memory > 0).then_some(Process { pid, name: program, memory_bytes: Some(memory) })
    };
    machine.numbered_names(format!("{KFD_PATH}/proc"), "").into_iter().filter_map(process).collect()
}

/// How many links of AMD's own lie between two nodes of the topology.
fn xgmi_links(machine: &Host, one: u32, other: u32) -> u32 {
    let directory = format!("{KFD_PATH}/topology/nodes/{one}/io_links");
    let is_one = |(name, _): &(String, u32)| {
        let link = properties(machine, &format!("{directory}/{name}/properties"));
        link.get("type") == Some(&XGMI_LINK_TYPE) && link.get("node_to") == Some(&u64::from(other))
    };
    u32::try_from(machine.numbered_names(&directory, "").iter().filter(|link| is_one(link)).count())
        .unwrap_or(0)
}
