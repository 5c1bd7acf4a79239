//! The PCI bus of a simulated host: a bridge a NUMA node, switches below it, cards below those.

use std::io;

use crate::model::Card;
use crate::tree::Tree;

/// Writes a card's device, and returns the directory of it. `drm` is the number of its nodes of /dev/dri, which are
/// made too.
pub(crate) fn device(
    tree: &Tree,
    card: &Card,
    vendor: &str,
    class: &str,
    driver: &str,
    drm: Option<u32>,
) -> io::Result<String> {
    let (pci, root) = (card.pci(), card.node * 64);
    // The root port, the switch's upper port, one of its lower ports, the card.
    let port = format!("0000:{root:02x}:{:02x}.0", card.switch + 1);
    let upper = format!("0000:{:02x}:00.0", root + card.switch * 16 + 1);
    let lower = format!("0000:{:02x}:{:02x}.0", root + card.switch * 16 + 2, card.port);
    let place = format!("devices/pci0000:{root:02x}/{port}/{upper}/{lower}/{pci}");
    let directory = format!("sys/{place}");
    tree.link(&format!("sys/bus/pci/devices/{pci}"), &format!("../../../{place}"))?;
    let files = [("class", class), ("vendor", vendor), ("device", card.device)];
    for (name, text) in files {
        tree.file(&format!("{directory}/{name}"), &format!("{text}\n"))?;
    }
    tree.file(&format!("{directory}/numa_node"), &format!("{}\n", card.node))?;
    tree.directory(&format!("sys/bus/pci/drivers/{driver}"))?;
    tree.link(&format!("{directory}/driver"), &format!("../../../../../../bus/pci/drivers/{driver}"))?;
    if let Some(number) = drm {
        for (name, minor) in
            [(format!("card{number}"), number), (format!("renderD{}", 128 + number), 128 + number)]
        {
            tree.directory(&format!("{directory}/drm/{name}"))?;
            tree.node(&format!("dev/dri/{name}"), 226, minor)?;
            tree.link(&format!("sys/class/drm/{name}"), &format!("../../{place}/drm/{name}"))?;
        }
    }
    Ok(directory)
}
