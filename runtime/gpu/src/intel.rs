//! Intel's cards as their drivers i915 and xe show them: /sys/bus/pci and /dev/dri.
//!
//! The drivers report neither a UUID nor the processes on a card; the memory is that of the card itself, which an
//! integrated one does not have (Documentation/ABI/testing/sysfs-driver-intel-i915-hwmon and the -xe file next to it
//! name the directories).

use jobc_schema::gpu::Vendor;

use super::host::Host;
use super::inventory::Gpu;
use super::{drm, pci};

/// The kernel's drivers for them.
const DRIVERS: [&str; 2] = ["i915", "xe"];

/// The cards, in the order of the PCI bus.
pub(super) fn discover(machine: &Host) -> Vec<Gpu> {
    let cards = pci::cards(machine).into_iter();
    let driven = cards.filter(|card| {
        card.vendor == "0x8086" && card.driver.as_deref().is_some_and(|driver| DRIVERS.contains(&driver))
    });
    let mut gpus: Vec<Gpu> = driven.filter_map(|card| gpu(machine, &card)).collect();
    for (index, gpu) in (0..).zip(&mut gpus) {
        gpu.index = index;
    }
    pci::set_links(machine, &mut gpus, &|_, _| 0);
    gpus
}

/// A card that has a node to compute with.
fn gpu(machine: &Host, card: &pci::Card) -> Option<Gpu> {
    let pci = card.pci.as_str();
    let nodes = drm::nodes(machine, pci);
    let minor = drm::minor(machine, pci)?;
    Some(Gpu {
        vendor: Vendor::Intel,
        name: format!("Intel GPU {}", card.device),
        pci: Some(pci.to_owned()),
        minor: Some(minor),
        memory_bytes: memory(machine, pci),
        numa_node: pci::numa_node(machine, pci),
        nodes,
        ..Gpu::default()
    })
}

/// The card's own memory: a file of i915's card, or one a tile of xe's.
fn memory(machine: &Host, pci: &str) -> Option<u64> {
    let device = format!("/sys/bus/pci/devices/{pci}");
    let cards = machine.numbered_names(format!("{device}/drm"), "card").into_iter();
    let mut of_cards =
        cards.filter_map(|(card, _)| machine.read_number(format!("{device}/drm/{card}/lmem_total_bytes")));
    of_cards.next().or_else(|| {
        let tiles = machine.numbered_names(&device, "tile").into_iter();
        let sum: u64 = tiles
            .filter_map(|(tile, _)| machine.read_number(format!("{device}/{tile}/physical_vram_size_bytes")))
            .sum();
        (sum > 0).then_some(sum)
    })
}
