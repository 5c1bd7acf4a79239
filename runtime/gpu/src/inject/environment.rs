//! The variables by which containers request GPUs, and their values if devices are injected in another way.
//!
//! `void` keeps NVIDIA's runtime and hook from acting a second time (container-toolkit, "Environment variables"). What
//! the job's author wrote stays, since nothing here reads it; only the hook would.

use std::path::Path;

use jobc_schema::gpu::{DriverCapability, Vendor};
use oci_spec::runtime::Spec;

use crate::cdi::edit::set_variable;
use crate::cdi::generate::DriverFiles;
use crate::inventory::{DeviceId, Inventory};

/// The variable that NVIDIA's hook and runtime read.
pub(super) const VISIBLE_DEVICES: &str = "NVIDIA_VISIBLE_DEVICES";

/// Overrides an image's request for devices: images based on CUDA request all.
pub(super) fn hide_all(spec: &mut Spec, written: Option<&str>) {
    for name in [VISIBLE_DEVICES, "AMD_VISIBLE_DEVICES"] {
        let by_author = name == VISIBLE_DEVICES && written.is_some();
        if value(spec, name).is_some() && !by_author {
            set_variable(spec, &format!("{name}=void"));
        }
    }
}

/// Restores the author's value.
pub(super) fn restore(spec: &mut Spec, written: Option<&str>) {
    if let Some(written) = written {
        set_variable(spec, &format!("{VISIBLE_DEVICES}={written}"));
    }
}

/// Names the devices for the program that injects them.
pub(super) fn name_devices(
    spec: &mut Spec,
    inventory: &Inventory,
    devices: &[DeviceId],
    written: Option<&str>,
) {
    let of = |vendor| {
        let of = devices.iter().filter(move |device| device.vendor == vendor);
        of.map(|device| inventory.name(*device)).collect::<Vec<_>>().join(",")
    };
    let (nvidia, amd) = (of(Vendor::Nvidia), of(Vendor::Amd));
    if !nvidia.is_empty() && written.is_none() {
        set_variable(spec, &format!("{VISIBLE_DEVICES}={nvidia}"));
    }
    if !amd.is_empty() {
        set_variable(spec, &format!("AMD_VISIBLE_DEVICES={amd}"));
    }
}

/// For programs on the host's own files: adds the driver's directories to the loader's path and `PATH` if they do not
/// contain them, after the existing entries.
pub(super) fn add_driver_paths(spec: &mut Spec, files: &DriverFiles) {
    let (libraries, programs) = files.unsearched_directories();
    append(spec, "LD_LIBRARY_PATH", libraries);
    if value(spec, "PATH").is_some() {
        append(spec, "PATH", &programs);
    }
}

/// Adds directories to a list of them in a variable, those that it has not.
fn append(spec: &mut Spec, name: &str, directories: &[impl AsRef<Path>]) {
    let mut list = value(spec, name).unwrap_or_default().to_owned();
    for directory in directories.iter().filter_map(|directory| directory.as_ref().to_str()) {
        if !list.split(':').any(|there| there == directory) {
            let colon = if list.is_empty() { "" } else { ":" };
            list = format!("{list}{colon}{directory}");
        }
    }
    if !directories.is_empty() {
        set_variable(spec, &format!("{name}={list}"));
    }
}

/// Driver capabilities [default: `compute` and `utility`, as with NVIDIA's hook].
pub(super) fn capabilities(wanted: &[DriverCapability]) -> &[DriverCapability] {
    if wanted.is_empty() { &[DriverCapability::Compute, DriverCapability::Utility] } else { wanted }
}

/// The value of a variable of the program.
pub fn value<'a>(spec: &'a Spec, name: &str) -> Option<&'a str> {
    let env = spec.process().as_ref()?.env().as_ref()?;
    env.iter().rev().find_map(|item| item.strip_prefix(name)?.strip_prefix('='))
}
