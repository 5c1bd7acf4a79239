//! Where NVML's file is.

use std::path::PathBuf;

use crate::gpu::Machine;

/// The name by which programs know it: libraries of this number have the functions that are asked.
const NAME: &str = "libnvidia-ml.so.1";

/// Where distributions, NVIDIA's installer and its containers put it.
const FOLDERS: [&str; 8] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/lib64",
    "/lib",
    "/usr/local/nvidia/lib64",
    "/usr/lib/wsl/lib",
];

/// The files to try, best first; nothing where nobody is to be asked.
pub(super) fn files(machine: &Machine) -> Option<Vec<PathBuf>> {
    if let Some(file) = &machine.nvml.library {
        return (!file.as_os_str().is_empty()).then(|| vec![file.clone()]);
    }
    // The dynamic linker knows best where this machine's libraries are.
    let by_name = machine.is_own().then(|| PathBuf::from(NAME));
    let found =
        FOLDERS.iter().map(|folder| machine.path(format!("{folder}/{NAME}"))).filter(|file| file.exists());
    Some(by_name.into_iter().chain(found).collect())
}
