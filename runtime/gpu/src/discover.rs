//! Takes the inventory: combines the data of all sources.

use super::host::Host;
use super::inventory::{Driver, Inventory, Source};
use super::nvml::{Freshness, recent};
use super::{amd, intel, nvidia, nvml, pci};

/// The node by which the driver is spoken to.
const CONTROL_NODE: &str = "/dev/nvidiactl";

impl Inventory {
    /// Reads the host's GPUs now.
    ///
    /// NVML is queried only if NVIDIA's driver is loaded. It may take seconds to wake the cards up; if it times out,
    /// the driver's files are used, with a note.
    pub fn discover(machine: &Host) -> Self {
        Self::discover_with(machine, Freshness::Now)
    }

    /// The same, if a report of NVML that is this current will do.
    pub fn discover_with(machine: &Host, freshness: Freshness) -> Self {
        let shown = nvidia::discover(machine);
        let validity = recent::validity(machine, &shown);
        let mut inventory = Self { notes: shown.notes, ..Self::default() };
        // If /proc is masked, as in some sandboxes, only the device nodes show the driver.
        let had_nodes = machine.has(CONTROL_NODE);
        if shown.release.is_some() || had_nodes {
            inventory.source = Source::Proc;
            inventory.driver = shown.release.map(|version| Driver { version, cuda: None });
            inventory.gpus = shown.gpus;
            let links = match nvml::report(machine, freshness, validity) {
                Ok(answer) => {
                    inventory.source = Source::Nvml;
                    (inventory.asked_by, inventory.asked_at) = (answer.program, answer.asked_at);
                    // Of root, NVML has had the nodes made that were missing.
                    if !had_nodes && machine.has(CONTROL_NODE) {
                        inventory.notes = nvidia::discover(machine).notes;
                    }
                    nvml::merge_report(answer.report, machine, &mut inventory)
                }
                Err(nvml::NvmlUnavailable::Disabled) => nvml::NvLinks::default(),
                Err(nvml::NvmlUnavailable::Failed(why)) => {
                    inventory.notes.push(format!(
                        "NVML is unavailable ({why}): memory, compute capability, MIG names, NVLink and the users of cards are unknown"
                    ));
                    nvml::NvLinks::default()
                }
            };
            pci::set_links(machine, &mut inventory.gpus, &|one, other| links.between(one, other));
        }
        inventory.gpus.extend(amd::discover(machine));
        inventory.gpus.extend(intel::discover(machine));
        inventory.remove_denied(machine);
        inventory
    }

    /// Removes what the device cgroup of this process denies: in a step of a batch system, others have it.
    ///
    /// The files of the driver show all cards, and so may NVML.
    fn remove_denied(&mut self, machine: &Host) {
        let before = self.devices().len();
        self.gpus.retain(|gpu| !gpu.nodes.first().is_some_and(|node| machine.denies(node)));
        for mig in self.gpus.iter_mut().filter_map(|gpu| gpu.mig.as_mut()) {
            mig.devices.retain(|instance| !instance.caps.iter().any(|node| machine.denies(node)));
        }
        self.denied = before - self.devices().len();
        if self.denied > 0 {
            self.notes.push(format!("{} GPUs are denied by the device cgroup of this process", self.denied));
            let left: Vec<u32> = self.gpus.iter().map(|gpu| gpu.index).collect();
            for gpu in &mut self.gpus {
                gpu.links.retain(|link| left.contains(&link.to));
            }
        }
    }
}

#[cfg(test)]
mod tests;
