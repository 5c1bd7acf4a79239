//! Where NVML's file is.

use std::path::PathBuf;

use crate::machine::Machine;
use crate::places;

/// The name by which programs know it: libraries of this number have the functions that are asked.
const NAME: &str = "libnvidia-ml.so.1";

/// Where the Windows Subsystem for Linux has it.
const WSL: &str = "/usr/lib/wsl/lib";

/// The files to try, best first; nothing where nobody is to be asked.
pub(super) fn files(machine: &Machine) -> Option<Vec<PathBuf>> {
    if let Some(file) = &machine.nvml.library {
        return (!file.as_os_str().is_empty()).then(|| vec![file.clone()]);
    }
    // The dynamic linker knows best where this machine's libraries are.
    let by_name = machine.is_own().then(|| PathBuf::from(NAME));
    Some(by_name.into_iter().chain(found(machine)).collect())
}

/// Those that are there, in the folders of drivers.
pub(super) fn found(machine: &Machine) -> impl Iterator<Item = PathBuf> {
    let folders = places::LIBRARIES.into_iter().chain([WSL]);
    folders.map(|folder| machine.path(format!("{folder}/{NAME}"))).filter(|file| file.exists())
}
