//! The variables by which containers ask for GPUs, and what they say where devices are given in another way.
//!
//! `void` keeps NVIDIA's runtime and hook from acting a second time (container-toolkit, "Environment variables"). What the
//! job's author wrote stays, since nothing here reads it; only the hook would.

use std::path::Path;

use jobc_schema::gpu::{DriverCapability, Vendor};
use oci_spec::runtime::Spec;

use crate::cdi::edit::set_variable;
use crate::cdi::generate::DriverFiles;
use crate::inventory::{DeviceId, Inventory};

/// The variable that NVIDIA's hook and runtime read.
pub(super) const VISIBLE: &str = "NVIDIA_VISIBLE_DEVICES";

/// Says that there are no devices where an image says that there are: those on CUDA ask for all.
pub(super) fn hide_all(spec: &mut Spec, written: Option<&str>) {
    for name in [VISIBLE, "AMD_VISIBLE_DEVICES"] {
        let by_author = name == VISIBLE && written.is_some();
        if value(spec, name).is_some() && !by_author {
            set_variable(spec, &format!("{name}=void"));
        }
    }
}

/// Puts back what the author wrote.
pub(super) fn restore(spec: &mut Spec, written: Option<&str>) {
    if let Some(written) = written {
        set_variable(spec, &format!("{VISIBLE}={written}"));
    }
}

/// Names the devices for whoever brings them in.
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
        set_variable(spec, &format!("{VISIBLE}={nvidia}"));
    }
    if !amd.is_empty() {
        set_variable(spec, &format!("AMD_VISIBLE_DEVICES={amd}"));
    }
}

/// Tells programs that have the machine's own files of the driver where the loader and `PATH` do not lead to it, behind what
/// they are told already.
pub(super) fn tell_of(spec: &mut Spec, files: &DriverFiles) {
    let (libraries, programs) = files.unsearched();
    append(spec, "LD_LIBRARY_PATH", libraries);
    if value(spec, "PATH").is_some() {
        append(spec, "PATH", &programs);
    }
}

/// Adds folders to a list of them in a variable, those that it has not.
fn append(spec: &mut Spec, name: &str, folders: &[impl AsRef<Path>]) {
    let mut list = value(spec, name).unwrap_or_default().to_owned();
    for folder in folders.iter().filter_map(|folder| folder.as_ref().to_str()) {
        if !list.split(':').any(|there| there == folder) {
            let colon = if list.is_empty() { "" } else { ":" };
            list = format!("{list}{colon}{folder}");
        }
    }
    if !folders.is_empty() {
        set_variable(spec, &format!("{name}={list}"));
    }
}

/// What of the driver is used: `compute` and `utility` unless said, as NVIDIA's hook has it.
pub(super) fn capabilities(wanted: &[DriverCapability]) -> &[DriverCapability] {
    if wanted.is_empty() { &[DriverCapability::Compute, DriverCapability::Utility] } else { wanted }
}

/// The value of a variable of the program.
pub fn value<'a>(spec: &'a Spec, name: &str) -> Option<&'a str> {
    let env = spec.process().as_ref()?.env().as_ref()?;
    env.iter().rev().find_map(|item| item.strip_prefix(name)?.strip_prefix('='))
}
