//! Takes the inventory: what each source sees, put together.

use super::inventory::{Driver, Inventory, Source};
use super::machine::Machine;
use super::{amd, intel, nvidia, nvml, pci};

/// The node by which the driver is spoken to.
const CONTROL: &str = "/dev/nvidiactl";

impl Inventory {
    /// Looks at what the machine has of GPUs now.
    ///
    /// NVML is asked only where NVIDIA's driver is loaded. It may take seconds to wake the cards up; where it says nothing
    /// in time, what the driver's files show has to do, and a note says so.
    pub fn take(machine: &Machine) -> Self {
        let shown = nvidia::look(machine);
        let mut inventory = Self { notes: shown.notes, ..Self::default() };
        // Where /proc is covered up, as in some sandboxes, the nodes alone tell of the driver.
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
                        "NVML says nothing ({why}): memory, compute capability, MIG names, NVLink and who uses a card \
                         are not known"
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
