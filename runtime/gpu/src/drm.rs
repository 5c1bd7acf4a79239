//! Cards as the kernel's graphics layer shows them: /sys/class/drm and the nodes of /dev/dri.

use std::path::PathBuf;

use super::host::Host;

/// The existing nodes of a card, the render node first: compute programs need no other.
pub(super) fn nodes(machine: &Host, pci: &str) -> Vec<PathBuf> {
    let directory = format!("/sys/bus/pci/devices/{pci}/drm");
    let render = machine.numbered_names(&directory, "renderD").into_iter();
    let names = render.chain(machine.numbered_names(&directory, "card")).map(|(name, _)| name);
    names.map(|name| PathBuf::from(format!("/dev/dri/{name}"))).filter(|node| machine.has(node)).collect()
}

/// The number of the card's render node: N of renderDN, less 128.
pub(super) fn minor(machine: &Host, pci: &str) -> Option<u32> {
    let nodes = machine.numbered_names(format!("/sys/bus/pci/devices/{pci}/drm"), "renderD");
    nodes.first().and_then(|(_, number)| number.checked_sub(128))
}
