//! Cards as the kernel's graphics layer shows them: /sys/class/drm and the nodes of /dev/dri.

use std::path::PathBuf;

use super::machine::Machine;

/// The nodes of a card that are there, that of rendering first: it is all a program that computes needs.
pub(super) fn nodes(machine: &Machine, pci: &str) -> Vec<PathBuf> {
    let directory = format!("/sys/bus/pci/devices/{pci}/drm");
    let render = machine.numbered(&directory, "renderD").into_iter();
    let names = render.chain(machine.numbered(&directory, "card")).map(|(name, _)| name);
    names.map(|name| PathBuf::from(format!("/dev/dri/{name}"))).filter(|node| machine.has(node)).collect()
}

/// The number of the card's render node: N of renderDN, less 128.
pub(super) fn minor(machine: &Machine, pci: &str) -> Option<u32> {
    let nodes = machine.numbered(format!("/sys/bus/pci/devices/{pci}/drm"), "renderD");
    nodes.first().and_then(|(_, number)| number.checked_sub(128))
}
