//! Takes the inventory: what each source sees, put together.

use super::{Driver, Inventory, Machine, Source, amd, intel, nvidia, pci};

impl Inventory {
    /// Looks at what the machine has of GPUs now.
    pub fn take(machine: &Machine) -> Self {
        let shown = nvidia::look(machine);
        let mut inventory = Self { notes: shown.notes, ..Self::default() };
        if let Some(version) = shown.release {
            inventory.source = Source::Proc;
            inventory.driver = Some(Driver { version, cuda: None });
            inventory.gpus = shown.gpus;
            pci::link(machine, &mut inventory.gpus, &|_, _| 0);
        }
        inventory.gpus.extend(amd::look(machine));
        inventory.gpus.extend(intel::look(machine));
        inventory
    }
}
