//! Machines for tests, from what matters of them.

use jobc_schema::gpu::Vendor;

use super::inventory::{Driver, Gpu, Inventory, Link, LinkType, Source};
use jobc_nvml::{CardState, Mig, MigDevice};

const GIB: u64 = 1 << 30;

/// A card of 80 GiB by its number.
pub fn card(index: u32) -> Gpu {
    Gpu {
        vendor: Vendor::Nvidia,
        index,
        uuid: Some(format!("GPU-{index:08}")),
        name: "NVIDIA A100-SXM4-80GB".to_owned(),
        brand: None,
        pci: Some(format!("0000:{index:02x}:00.0")),
        minor: Some(index),
        memory_bytes: Some(80 * GIB),
        compute_capability: Some((8, 0)),
        numa_node: None,
        nodes: vec![format!("/dev/nvidia{index}").into()],
        mig: None,
        links: vec![],
        processes: vec![],
        memory_used: None,
        state: CardState::default(),
    }
}

/// A host of groups of cards: NVLink within a group, and between them the way through the processors.
pub fn host(groups: &[&[u32]]) -> Inventory {
    let group = |card: u32| groups.iter().position(|group| group.contains(&card));
    let mut all: Vec<u32> = groups.concat();
    all.sort_unstable();
    let gpus = all.iter().map(|&index| {
        let others = all.iter().filter(|&&other| other != index);
        let link = |&to: &u32| {
            let by = if group(to) == group(index) { LinkType::Nvlink(4) } else { LinkType::System };
            Link { to, by }
        };
        Gpu { links: others.map(link).collect(), ..card(index) }
    });
    let driver = Driver { version: "550.54.15".to_owned(), cuda: Some("12.4".to_owned()) };
    Inventory { driver: Some(driver), gpus: gpus.collect(), source: Source::Nvml, ..Inventory::default() }
}

/// Cuts a card up into MIG instances of these profiles.
pub fn partition(inventory: &mut Inventory, card: u32, profiles: &[&str]) {
    let instance = |(index, profile): (u32, &&str)| MigDevice {
        index,
        uuid: Some(format!("MIG-{card}-{index}")),
        profile: Some((*profile).to_owned()),
        memory_bytes: profile
            .split_once('.')
            .and_then(|(_, rest)| rest.strip_suffix("gb")?.parse::<u64>().ok())
            .map(|gb| gb * GIB),
        gi: index + 1,
        ci: 0,
        caps: vec![],
    };
    let devices = (0..).zip(profiles).map(instance).collect();
    if let Some(gpu) = inventory.gpus.iter_mut().find(|gpu| gpu.index == card) {
        gpu.mig = Some(Mig { enabled: true, devices });
    }
}
