//! The GPUs of a step of a batch system, a scope or a pod: those that its device cgroup and its variables allow.
//!
//! The device cgroup is the first source: what it denies is not in the [`Inventory`] at all. Variables narrow the rest
//! down. `CUDA_VISIBLE_DEVICES` and `ROCR_VISIBLE_DEVICES` count the devices that are left, in the order of the PCI
//! bus, as the vendors' own libraries do, so a container gets the devices that a program of the step would have used.
//! `SLURM_STEP_GPUS` counts the lines of the node's gres.conf, in the order of the nodes' numbers, and says which ones
//! only where nothing is denied.

use std::collections::BTreeSet;

use jobc_schema::gpu::Vendor;
use jobc_sys::error::{Error, Kind, Result};

use super::device_names::short_name;
use super::host::Host;
use super::inventory::{DeviceId, Inventory};
use super::nvml::Freshness;

/// The variables of a step that name its GPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepVariables {
    /// `CUDA_VISIBLE_DEVICES`.
    pub cuda: Option<String>,
    /// `ROCR_VISIBLE_DEVICES`.
    pub rocr: Option<String>,
    /// `SLURM_STEP_GPUS`, or `SLURM_JOB_GPUS` in a batch script.
    pub slurm: Option<String>,
    /// Whether slurmd started this, as a step or a batch script: then no variable means no GPU.
    pub is_slurm: bool,
}

impl StepVariables {
    /// Those of this process.
    pub fn here() -> Self {
        let variable = |name: &str| std::env::var(name).ok();
        Self {
            cuda: variable("CUDA_VISIBLE_DEVICES"),
            rocr: variable("ROCR_VISIBLE_DEVICES"),
            slurm: variable("SLURM_STEP_GPUS").or_else(|| variable("SLURM_JOB_GPUS")),
            is_slurm: variable("SLURMD_NODENAME").is_some(),
        }
    }

    /// The vendor's own variable, and its name.
    fn of_vendor(&self, vendor: Vendor) -> Option<(&'static str, &str)> {
        let (name, value) = match vendor {
            Vendor::Nvidia => ("CUDA_VISIBLE_DEVICES", &self.cuda),
            Vendor::Amd => ("ROCR_VISIBLE_DEVICES", &self.rocr),
            _ => return None,
        };
        Some((name, value.as_deref()?))
    }
}

/// The devices of a vendor that a container in the step may have, in the order of the variable that names them.
///
/// # Errors
///
/// A variable names a device that is not there.
pub fn devices(inventory: &Inventory, vendor: Vendor, variables: &StepVariables) -> Result<Vec<DeviceId>> {
    let all = inventory.devices().into_iter();
    let all: Vec<DeviceId> = all.filter(|device| device.vendor == vendor).collect();
    if let Some((name, value)) = variables.of_vendor(vendor) {
        let words = value.split(',').map(str::trim).filter(|word| !word.is_empty());
        return words
            .take_while(|word| !is_none(word))
            .map(|word| named(word, name, &all, inventory))
            .collect();
    }
    if !variables.is_slurm || inventory.denied > 0 {
        return Ok(all);
    }
    let Some(slurm) = &variables.slurm else { return Ok(vec![]) };
    let mut by_node = all;
    by_node.sort_by_key(|device| inventory.gpu(*device).and_then(|gpu| gpu.minor));
    let numbers = slurm.split(',').map(str::trim).filter(|word| !word.is_empty());
    numbers.map(|word| named(word, "SLURM_STEP_GPUS", &by_node, inventory)).collect()
}

/// The host's GPUs as jobs may use them: under Slurm those of this step or batch script, also where no device cgroup
/// denies the others.
pub fn usable_inventory(machine: &Host, freshness: Freshness) -> Inventory {
    let mut inventory = Inventory::discover_with(machine, freshness);
    restrict(&mut inventory, &StepVariables::here());
    inventory
}

fn restrict(inventory: &mut Inventory, variables: &StepVariables) {
    if !variables.is_slurm {
        return;
    }
    let mut vendors: Vec<Vendor> = inventory.gpus.iter().map(|gpu| gpu.vendor).collect();
    vendors.dedup();
    let mut usable = Vec::new();
    for vendor in vendors {
        match devices(inventory, vendor, variables) {
            Ok(devices) => usable.extend(devices),
            Err(error) => inventory.notes.push(error.to_string()),
        }
    }
    inventory.gpus.retain(|gpu| usable.iter().any(|id| (id.vendor, id.gpu) == (gpu.vendor, gpu.index)));
    for gpu in &mut inventory.gpus {
        let of_card = |mig| DeviceId { vendor: gpu.vendor, gpu: gpu.index, mig: Some(mig) };
        if let Some(mig) = gpu.mig.as_mut().filter(|mig| mig.enabled) {
            mig.devices.retain(|instance| usable.contains(&of_card(instance.index)));
        }
    }
    let left: Vec<u32> = inventory.gpus.iter().map(|gpu| gpu.index).collect();
    for gpu in &mut inventory.gpus {
        gpu.links.retain(|link| left.contains(&link.to));
    }
}

/// As many of the step's devices as a container requests.
///
/// # Errors
///
/// The step has fewer, or a variable names one that is not there.
pub fn take(
    inventory: &Inventory,
    vendor: Vendor,
    variables: &StepVariables,
    count: usize,
) -> Result<Vec<DeviceId>> {
    let mut devices = devices(inventory, vendor, variables)?;
    let distinct: BTreeSet<DeviceId> = devices.iter().copied().collect();
    if distinct.len() < count {
        let there: Vec<String> = devices.iter().map(|device| short_name(*device)).collect();
        let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
        let message =
            format!("the bundle asks for {count} GPUs, and {} are available here: {there}", distinct.len());
        let denied = if inventory.denied > 0 {
            format!("the device cgroup denies {} others; ", inventory.denied)
        } else {
            String::new()
        };
        return Err(Error::new(Kind::Unenforceable, message)
            .help(format!("{denied}ask the batch system for as many GPUs as the job does")));
    }
    devices.truncate(count);
    Ok(devices)
}

/// Words that stand for no device.
fn is_none(word: &str) -> bool {
    ["-1", "void", "none", "NoDevFiles"].contains(&word)
}

/// The device of a word: the number of one in a list, or the beginning of a name.
fn named(word: &str, variable: &str, list: &[DeviceId], inventory: &Inventory) -> Result<DeviceId> {
    let found = if let Ok(number) = word.parse::<usize>() {
        list.get(number).copied()
    } else {
        let is_meant = |device: &&DeviceId| inventory.name(**device).starts_with(word);
        let mut meant = list.iter().filter(is_meant);
        meant.next().copied().filter(|_| meant.next().is_none())
    };
    found.ok_or_else(|| {
        let message = format!("`{variable}` names the GPU `{word}`, and {} are available here", list.len());
        Error::new(Kind::System, message).help("`jobc gpu ls` in the step lists them")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{host, partition};

    fn variables(cuda: Option<&str>, slurm: Option<&str>) -> StepVariables {
        let text = |text: Option<&str>| text.map(str::to_owned);
        StepVariables { cuda: text(cuda), slurm: text(slurm), is_slurm: true, ..StepVariables::default() }
    }

    fn names(inventory: &Inventory, variables: &StepVariables) -> String {
        match devices(inventory, Vendor::Nvidia, variables) {
            Ok(devices) => devices.into_iter().map(short_name).collect::<Vec<_>>().join(" "),
            Err(error) => error.to_string(),
        }
    }

    /// A host where the device cgroup has left GPUs 2 and 3 of 4.
    fn constrained() -> Inventory {
        let mut inventory = host(&[&[0, 1, 2, 3]]);
        inventory.gpus.retain(|gpu| gpu.index > 1);
        inventory.denied = 2;
        inventory
    }

    #[test]
    fn inside_a_device_cgroup_numbers_count_what_is_left() {
        let inventory = constrained();
        assert_eq!(names(&inventory, &variables(Some("0,1"), Some("2,3"))), "2 3");
        assert_eq!(names(&inventory, &variables(Some("1"), Some("2,3"))), "3");
        assert_eq!(names(&inventory, &variables(None, Some("2,3"))), "2 3");
        assert_eq!(names(&inventory, &variables(None, None)), "2 3");
        assert_eq!(names(&inventory, &variables(Some(""), None)), "");
        assert_eq!(names(&inventory, &variables(Some("NoDevFiles"), None)), "");
        assert_eq!(
            names(&inventory, &variables(Some("2"), None)),
            "`CUDA_VISIBLE_DEVICES` names the GPU `2`, and 2 are available here"
        );
    }

    #[test]
    fn without_one_numbers_count_the_node_and_no_variable_means_none() {
        let mut inventory = host(&[&[0, 1, 2, 3]]);
        assert_eq!(names(&inventory, &variables(Some("3,2"), Some("2,3"))), "3 2");
        assert_eq!(names(&inventory, &variables(None, Some("1,2"))), "1 2");
        assert_eq!(names(&inventory, &variables(None, None)), "");
        assert_eq!(names(&inventory, &StepVariables::default()), "0 1 2 3");
        // gres.conf lists nodes, whose numbers may be in another order than the cards on the bus.
        for (gpu, minor) in inventory.gpus.iter_mut().zip([3, 2, 1, 0]) {
            gpu.minor = Some(minor);
        }
        assert_eq!(names(&inventory, &variables(None, Some("0,1"))), "3 2");
    }

    #[test]
    fn names_are_those_of_cards_and_of_mig_instances() {
        let mut inventory = host(&[&[0, 1], &[2]]);
        partition(&mut inventory, 2, &["1g.10gb", "2g.20gb"]);
        assert_eq!(names(&inventory, &variables(Some("GPU-00000001,MIG-2-1"), None)), "1 2:1");
        assert_eq!(names(&inventory, &variables(Some("2"), None)), "2:0");
        assert_eq!(
            names(&inventory, &variables(Some("GPU-"), None)),
            "`CUDA_VISIBLE_DEVICES` names the GPU `GPU-`, and 4 are available here"
        );
    }

    #[test]
    fn jobs_in_a_step_use_its_devices_alone() {
        let indices = |variables: &StepVariables| {
            let mut inventory = host(&[&[0, 1], &[2, 3]]);
            partition(&mut inventory, 3, &["1g.10gb", "2g.20gb"]);
            restrict(&mut inventory, variables);
            let links = inventory.gpus.iter().map(|gpu| gpu.links.len()).sum::<usize>();
            (inventory.devices().into_iter().map(short_name).collect::<Vec<_>>().join(" "), links)
        };
        assert_eq!(indices(&StepVariables::default()), ("0 1 2 3:0 3:1".to_owned(), 12));
        assert_eq!(indices(&variables(Some("1,MIG-3-1"), None)), ("1 3:1".to_owned(), 2));
        assert_eq!(indices(&variables(None, None)), (String::new(), 0));
        assert_eq!(indices(&variables(Some("9"), None)), (String::new(), 0));
    }

    #[test]
    fn a_container_gets_as_many_as_it_asks_for() {
        let inventory = constrained();
        let taken = |count| take(&inventory, Vendor::Nvidia, &variables(Some("0,1"), None), count);
        assert_eq!(taken(1).unwrap().len(), 1);
        let error = taken(3).unwrap_err();
        assert_eq!(error.to_string(), "the bundle asks for 3 GPUs, and 2 are available here: 2, 3");
        assert!(error.advice().unwrap().starts_with("the device cgroup denies 2 others; "));
        let twice = take(&inventory, Vendor::Nvidia, &variables(Some("0,0"), None), 2);
        assert_eq!(twice.unwrap_err().kind, Kind::Unenforceable);
    }
}
