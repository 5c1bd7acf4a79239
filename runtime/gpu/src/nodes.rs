//! Nodes that NVIDIA's driver has not made yet.
//!
//! The kernel creates none of them: libraries do when a program first uses CUDA, and `nvidia-modprobe`, which belongs
//! to root with the set-user-ID bit, does it for all users. After boot there may be no /dev/nvidia-uvm, without which
//! no CUDA program runs, and a container's libraries cannot create any ([`super::hook`]).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use jobc_schema::gpu::{DriverCapability, Vendor};

use super::cdi::generate::needed_nodes;
use super::host::Host;
use super::inventory::{DeviceId, Inventory};
use super::libraries::is_wanted;
use super::{nvidia, paths};
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::run_with_timeout;

const UVM_NODE: &str = "/dev/nvidia-uvm";

/// How long a module may take to load.
const MODULE_LOAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Creates the missing nodes of these devices.
///
/// # Errors
///
/// A node that does not exist and cannot be made.
pub(super) fn create_missing(
    machine: &Host,
    inventory: &Inventory,
    devices: &[DeviceId],
    capabilities: &[DriverCapability],
) -> Result<()> {
    let devices: Vec<DeviceId> =
        devices.iter().copied().filter(|device| device.vendor == Vendor::Nvidia).collect();
    if devices.is_empty() {
        return Ok(());
    }
    if is_wanted(DriverCapability::Compute, capabilities) {
        create_node(machine, Path::new(UVM_NODE), &["-c".into(), "0".into(), "-u".into()])?;
    }
    for device in devices {
        let nodes = needed_nodes(inventory, device);
        let Some(first) = nodes.first().filter(|node| !node.starts_with(nvidia::CAPS_DIRECTORY)) else {
            let name = inventory.name(device);
            let message = format!("the GPU `{name}` has no node /dev/nvidia… here");
            return Err(Error::new(Kind::System, message)
                .help("run `nvidia-modprobe -c N` as root, with the card's number; in a container, give it the card's node"));
        };
        let minor = first.file_name().and_then(|name| name.to_str()?.strip_prefix("nvidia"));
        create_node(machine, first, &["-c".into(), minor.unwrap_or_default().into()])?;
        let Some(instance) = inventory.mig(device) else { continue };
        let minor = inventory.gpu(device).and_then(|gpu| gpu.minor).unwrap_or(device.gpu);
        let files = nvidia::capability_files(minor, instance.gi, instance.ci);
        for (node, file) in instance.caps.iter().zip(files) {
            create_node(machine, node, &["-f".into(), file.into()])?;
        }
    }
    Ok(())
}

/// Has a node made that does not exist.
fn create_node(machine: &Host, node: &Path, words: &[PathBuf]) -> Result<()> {
    if machine.has(node) {
        return Ok(());
    }
    let program =
        paths::PROGRAM_DIRECTORIES.map(|directory| machine.path(format!("{directory}/nvidia-modprobe")));
    if machine.has_own_kernel()
        && let Some(program) = program.into_iter().find(|path| path.exists())
    {
        // Whether it did is seen below.
        let _ = run_with_timeout::run(Command::new(program).args(words), MODULE_LOAD_TIMEOUT);
    }
    if machine.has(node) {
        return Ok(());
    }
    let words: Vec<String> = words.iter().map(|word| word.display().to_string()).collect();
    let message = format!("the node `{}` does not exist, and GPUs cannot be used without it", node.display());
    Err(Error::new(Kind::System, message)
        .help(format!("run `nvidia-modprobe {}` as root, or start nvidia-persistenced", words.join(" "))))
}

#[cfg(test)]
mod tests {
    use jobc_fake_gpus::{Nodes, model};

    use super::*;

    #[test]
    fn a_node_that_is_not_there_is_an_error_that_says_how_to_make_it() {
        let tree = tempfile::tempdir().unwrap();
        jobc_fake_gpus::write_host(&model::named("a100").unwrap(), tree.path(), Nodes::Files).unwrap();
        let machine = Host::at(tree.path());
        let inventory = Inventory::discover(&machine);
        let devices = inventory.devices();
        let report = |capabilities| {
            create_missing(&machine, &inventory, &devices, capabilities).map_err(|error| format!("{error:?}"))
        };
        let compute = &[DriverCapability::Compute];
        report(compute).unwrap();
        let cut = devices.iter().find(|device| device.mig.is_some()).unwrap();
        let cap = &inventory.mig(*cut).unwrap().caps[1];
        let remove = |node: &Path| std::fs::remove_file(machine.path(node)).unwrap();
        remove(cap);
        let why = report(compute).unwrap_err();
        assert!(why.contains(&*cap.to_string_lossy()) && why.contains("ci0/access"), "{why}");
        remove(Path::new("/dev/nvidia-uvm"));
        let why = report(compute).unwrap_err();
        assert!(
            why.contains("`/dev/nvidia-uvm` does not exist") && why.contains("nvidia-modprobe -c 0 -u"),
            "{why}"
        );
        // Programs that do not compute do not need it.
        let whole: Vec<DeviceId> = devices.iter().copied().filter(|device| device.mig.is_none()).collect();
        create_missing(&machine, &inventory, &whole, &[DriverCapability::Utility]).unwrap();
    }
}
