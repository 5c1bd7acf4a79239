//! Directories in which NVIDIA's driver is found: those of distributions, of NVIDIA's installer, and of clusters that
//! mount it.
//!
//! In containers of a cluster the driver often lies below [`MOUNTED_DRIVER`], which neither the loader nor `PATH` contains by
//! default (Google's and others' device plugins mount it there).

use std::path::Path;

/// Where clusters mount the driver, with `bin`, `lib64` and `share`.
pub(super) const MOUNTED_DRIVER: &str = "/usr/local/nvidia";

/// Directories of programs, the usual first.
pub(super) const PROGRAM_DIRECTORIES: [&str; 8] = [
    "/usr/bin",
    "/usr/sbin",
    "/bin",
    "/sbin",
    "/usr/local/bin",
    "/usr/local/nvidia/bin",
    "/opt/nvidia/bin",
    "/run/current-system/sw/bin",
];

/// Directories of libraries.
pub(super) const LIBRARY_DIRECTORIES: [&str; 13] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib/x86_64-linux-gnu/nvidia/current",
    "/usr/lib/aarch64-linux-gnu/nvidia/current",
    "/usr/lib64/nvidia",
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
    "/run/opengl-driver/lib",
    "/usr/lib/i386-linux-gnu",
    "/usr/lib/i386-linux-gnu/nvidia/current",
    "/usr/lib32",
    "/usr/lib",
];

/// Directories that every loader searches by default (ld.so(8)), by what distributions build into it.
const LOADER_DIRECTORIES: [&str; 4] =
    ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"];

/// Whether programs find a file of this directory by its name alone, as every `PATH` has it.
pub(super) fn is_on_default_path(directory: &Path) -> bool {
    PROGRAM_DIRECTORIES[..5].iter().any(|usual| directory == Path::new(usual))
}

/// Whether loaders search a directory of libraries by default.
pub(super) fn is_loader_directory(directory: &Path) -> bool {
    LOADER_DIRECTORIES.iter().any(|usual| directory == Path::new(usual))
}
