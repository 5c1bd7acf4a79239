//! Where NVML's file is.

use std::path::PathBuf;

use crate::host::Host;
use crate::paths;

/// The name that programs use: libraries with this soname have the functions that are called.
const SONAME: &str = "libnvidia-ml.so.1";

/// Where the Windows Subsystem for Linux has it.
const WSL_DIRECTORY: &str = "/usr/lib/wsl/lib";

/// The files to try, best first; empty if NVML is disabled.
pub(super) fn files(machine: &Host) -> Option<Vec<PathBuf>> {
    if let Some(file) = &machine.nvml.library {
        return (!file.as_os_str().is_empty()).then(|| vec![file.clone()]);
    }
    // The dynamic linker finds this host's libraries best.
    let by_name = machine.is_own().then(|| PathBuf::from(SONAME));
    Some(by_name.into_iter().chain(existing_files(machine)).collect())
}

/// The existing files in driver directories.
pub(super) fn existing_files(machine: &Host) -> impl Iterator<Item = PathBuf> {
    let directories = paths::LIBRARY_DIRECTORIES.into_iter().chain([WSL_DIRECTORY]);
    directories.map(|directory| machine.path(format!("{directory}/{SONAME}"))).filter(|file| file.exists())
}
