//! The files of Intel's driver i915.

use std::io;

use crate::model::FakeHost;
use crate::pci;
use crate::tree::Tree;

pub(crate) fn write(tree: &Tree, machine: &FakeHost) -> io::Result<()> {
    for (number, card) in (32..).zip(&machine.intel) {
        let device = pci::device(tree, card, "0x8086", "0x038000", "i915", Some(number))?;
        let text = format!("{}\n", card.memory << 20);
        tree.file(&format!("{device}/drm/card{number}/lmem_total_bytes"), &text)?;
    }
    Ok(())
}
