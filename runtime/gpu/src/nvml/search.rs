//! Where NVML's file is.

use std::path::PathBuf;

use crate::machine::Machine;
use crate::places;

/// The name that programs use: libraries with this soname have the functions that are called.
const NAME: &str = "libnvidia-ml.so.1";

/// Where the Windows Subsystem for Linux has it.
const WSL: &str = "/usr/lib/wsl/lib";

/// The files to try, best first; nothing if NVML is not to be queried.
pub(super) fn files(machine: &Machine) -> Option<Vec<PathBuf>> {
    if let Some(file) = &machine.nvml.library {
        return (!file.as_os_str().is_empty()).then(|| vec![file.clone()]);
    }
    // The dynamic linker knows best where this host's libraries are.
    let by_name = machine.is_own().then(|| PathBuf::from(NAME));
    Some(by_name.into_iter().chain(found(machine)).collect())
}

/// Those that are there, in the directories of drivers.
pub(super) fn found(machine: &Machine) -> impl Iterator<Item = PathBuf> {
    let directories = places::LIBRARIES.into_iter().chain([WSL]);
    directories.map(|directory| machine.path(format!("{directory}/{NAME}"))).filter(|file| file.exists())
}
