//! Takes the inventory: combines the data of all sources.

use super::inventory::{Driver, Inventory, Source};
use super::machine::Machine;
use super::{amd, intel, nvidia, nvml, pci};

/// The node by which the driver is spoken to.
const CONTROL: &str = "/dev/nvidiactl";

impl Inventory {
    /// Reads the host's GPUs now.
    ///
    /// NVML is queried only if NVIDIA's driver is loaded. It may take seconds to wake the cards up; if it times out,
    /// the driver's files are used, with a note.
    pub fn take(machine: &Machine) -> Self {
        let shown = nvidia::look(machine);
        let mut inventory = Self { notes: shown.notes, ..Self::default() };
        // If /proc is masked, as in some sandboxes, only the device nodes show the driver.
        let had_nodes = machine.has(CONTROL);
        if shown.release.is_some() || had_nodes {
            inventory.source = Source::Proc;
            inventory.driver = shown.release.map(|version| Driver { version, cuda: None });
            inventory.gpus = shown.gpus;
            let links = match nvml::ask(machine) {
                Ok(answer) => {
                    inventory.source = Source::Nvml;
                    inventory.asked_by = answer.by;
                    // Of root, NVML has had the nodes made that were missing.
                    if !had_nodes && machine.has(CONTROL) {
                        inventory.notes = nvidia::look(machine).notes;
                    }
                    nvml::write(answer.said, machine, &mut inventory)
                }
                Err(nvml::Silence::NotAsked) => nvml::NvLinks::default(),
                Err(nvml::Silence::Because(why)) => {
                    inventory.notes.push(format!(
                        "NVML is unavailable ({why}): memory, compute capability, MIG names, NVLink and the users of cards are unknown"
                    ));
                    nvml::NvLinks::default()
                }
            };
            pci::link(machine, &mut inventory.gpus, &|one, other| links.between(one, other));
        }
        inventory.gpus.extend(amd::look(machine));
        inventory.gpus.extend(intel::look(machine));
        inventory
    }
}

#[cfg(test)]
mod tests;
