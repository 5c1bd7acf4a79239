//! The PCI bus: where cards are, and what lies between two of them.
//!
//! The kernel shows each device as a link to its place in the tree of bridges,
//! `devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/…` (Documentation/ABI/testing/sysfs-bus-pci). The words for what lies
//! between are those of `nvidia-smi topo -m`.

use super::host::Host;
use super::inventory::{Gpu, Link, LinkType};

const DEVICES_PATH: &str = "/sys/bus/pci/devices";

/// A display controller of some kind, or a processing accelerator, by the first digits of the class (pci.ids).
const CLASSES: [&str; 2] = ["0x03", "0x1200"];

/// A device of the bus that may be a GPU.
pub(super) struct Card {
    /// Its place, `0000:3b:00.0`.
    pub(super) pci: String,
    /// The vendor's number, `0x10de`.
    pub(super) vendor: String,
    /// The device's number, `0x2335`.
    pub(super) device: String,
    /// The kernel's driver that has it, `nvidia`.
    pub(super) driver: Option<String>,
}

/// The devices of the bus that may be GPUs, in its order.
pub(super) fn cards(machine: &Host) -> Vec<Card> {
    let field = |pci: &str, name: &str| {
        machine.read_trimmed(format!("{DEVICES_PATH}/{pci}/{name}")).unwrap_or_default()
    };
    let of = |pci: String| {
        let class = field(&pci, "class");
        CLASSES.iter().any(|prefix| class.starts_with(prefix)).then(|| Card {
            vendor: field(&pci, "vendor"),
            device: field(&pci, "device"),
            driver: driver(machine, &pci),
            pci,
        })
    };
    machine.names(DEVICES_PATH).into_iter().filter_map(of).collect()
}

/// The kernel's driver that has a device.
fn driver(machine: &Host, pci: &str) -> Option<String> {
    let link = std::fs::read_link(machine.path(format!("{DEVICES_PATH}/{pci}/driver"))).ok()?;
    link.file_name()?.to_str().map(str::to_owned)
}

/// The NUMA node of a device; `None` on a host with only one, for which the kernel reports -1.
pub(super) fn numa_node(machine: &Host, pci: &str) -> Option<u32> {
    machine.read_number(format!("{DEVICES_PATH}/{pci}/numa_node")).and_then(|node| node.try_into().ok())
}

/// Sets for each card how it reaches the others by PCIe; `nvlinks` lists the pairs that are also linked, with their
/// number of links.
pub(super) fn set_links(machine: &Host, gpus: &mut [Gpu], nvlinks: &dyn Fn(u32, u32) -> u32) {
    let places: Vec<Option<Vec<String>>> =
        gpus.iter().map(|gpu| gpu.pci.as_deref().and_then(|pci| bus_path(machine, pci))).collect();
    for one in 0..gpus.len() {
        let mut links = vec![];
        for other in (0..gpus.len()).filter(|other| *other != one) {
            let (a, b) = (&gpus[one], &gpus[other]);
            if a.vendor != b.vendor {
                continue;
            }
            let by = match (nvlinks(a.index, b.index), &places[one], &places[other]) {
                (0, Some(here), Some(there)) => link_between(here, there, a.numa_node, b.numa_node),
                (0, ..) => continue,
                (count, ..) => LinkType::Nvlink(count),
            };
            links.push(Link { to: b.index, by });
        }
        gpus[one].links = links;
    }
}

/// The bridges above a device from the root of the bus down, and the device itself.
fn bus_path(machine: &Host, pci: &str) -> Option<Vec<String>> {
    let link = std::fs::read_link(machine.path(format!("{DEVICES_PATH}/{pci}"))).ok()?;
    let names = link.iter().filter_map(|name| name.to_str().map(str::to_owned));
    let place: Vec<String> = names.skip_while(|name| !name.starts_with("pci")).collect();
    (place.len() > 1).then_some(place)
}

/// The connection between two devices.
fn link_between(here: &[String], there: &[String], node: Option<u32>, other: Option<u32>) -> LinkType {
    let common = here.iter().zip(there).take_while(|(one, other)| one == other).count();
    match common {
        // Without NUMA all memory is equally far.
        0 if node == other => LinkType::Node,
        0 => LinkType::System,
        1 => LinkType::Bridge,
        // Below a switch's upper port lies one of its lower ports, then the card.
        _ if here.len().max(there.len()) - common <= 2 => LinkType::Switch,
        _ => LinkType::Switches,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_between_is_derived_from_the_bridges_above() {
        let place = |text: &str| -> Vec<String> { text.split('/').map(str::to_owned).collect() };
        let first = place("pci0000:3a/3a:00.0/3b:00.0/3c:00.0/3d:00.0");
        let way = |other: &str, node| link_between(&first, &place(other), Some(0), node);
        assert_eq!(way("pci0000:3a/3a:00.0/3b:00.0/3c:04.0/3e:00.0", Some(0)), LinkType::Switch);
        assert_eq!(
            way("pci0000:3a/3a:00.0/3b:00.0/3c:08.0/40:00.0/41:00.0/42:00.0", Some(0)),
            LinkType::Switches
        );
        assert_eq!(way("pci0000:3a/3a:02.0/50:00.0", Some(0)), LinkType::Bridge);
        assert_eq!(way("pci0000:5d/5d:00.0/5e:00.0", Some(0)), LinkType::Node);
        assert_eq!(way("pci0000:ae/ae:00.0/af:00.0", Some(1)), LinkType::System);
        assert_eq!(link_between(&first, &place("pci0000:5d/5e:00.0"), None, None), LinkType::Node);
    }
}
