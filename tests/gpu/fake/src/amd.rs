//! The files of AMD's driver: the topology of /sys/class/kfd, and the PCI devices.

use std::io;

use crate::model::{Card, FakeHost};
use crate::pci;
use crate::tree::Tree;

pub(crate) fn write(tree: &Tree, machine: &FakeHost) -> io::Result<()> {
    if machine.amd.is_empty() {
        return Ok(());
    }
    tree.node("dev/kfd", 238, 0)?;
    // The first node is the processor.
    let nodes = "sys/class/kfd/kfd/topology/nodes";
    tree.file(&format!("{nodes}/0/properties"), "cpu_cores_count 64\nsimd_count 0\nlocation_id 0\n")?;
    tree.file(&format!("{nodes}/0/gpu_id"), "0\n")?;
    for (number, card) in (1_u32..).zip(&machine.amd) {
        let node = format!("{nodes}/{number}");
        let drm = 63 - number;
        let device = pci::device(tree, card, "0x1002", "0x120000", "amdgpu", Some(drm))?;
        tree.file(&format!("{device}/product_name"), &format!("{}\n", card.name))?;
        tree.file(&format!("{device}/mem_info_vram_total"), &format!("{}\n", card.memory << 20))?;
        tree.file(&format!("{device}/mem_info_vram_used"), &format!("{}\n", 300 << 20))?;
        tree.file(&format!("{node}/gpu_id"), &format!("{}\n", 40000 + number))?;
        tree.file(&format!("{node}/properties"), &properties(number, card, drm))?;
        for other in (1..).take(machine.amd.len()).filter(|other| *other != number) {
            let text = format!("type 11\nnode_from {number}\nnode_to {other}\nweight 15\n");
            tree.file(&format!("{node}/io_links/{other}/properties"), &text)?;
        }
    }
    Ok(())
}

fn properties(number: u32, card: &Card, drm: u32) -> String {
    format!(
        "cpu_cores_count 0\nsimd_count 1216\ngfx_target_version 90402\nvendor_id 4098\ndevice_id 29857\n\
         location_id {}\ndomain 0\ndrm_render_minor {}\nunique_id {}\n",
        card.bus() << 8,
        128 + drm,
        0x9c_5c00_0000_0000_u64 + u64::from(number)
    )
}
