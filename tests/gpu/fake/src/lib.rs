//! Made-up machines with GPUs, for tests.
//!
//! [`make`] writes the files by which the drivers of a [`model::Machine`] show themselves, /proc, /sys, /dev, libraries
//! and programs, into a directory that `JOBC_DRIVER_ROOT` may name. [`nvml::build`] puts a library there that answers
//! as NVML does. The formats were written down from the drivers' sources and from machines that people have shown; no
//! driver made them.
#![forbid(unsafe_code)]

mod amd;
mod intel;
pub mod model;
mod nvidia;
pub mod nvml;
mod pci;
pub mod plan;
mod tree;

use std::io;
use std::path::Path;

pub use model::Machine;
pub use tree::{Nodes, Tree};

/// Writes the files of a simulated host into a directory that is empty or not there, without NVML.
pub fn make(machine: &Machine, directory: &Path, nodes: Nodes) -> io::Result<()> {
    let tree = Tree::new(directory, nodes);
    tree.file("proc/devices", &devices(machine))?;
    tree.directory("sys/bus/pci/devices")?;
    tree.directory("dev")?;
    nvidia::write(&tree, machine)?;
    amd::write(&tree, machine)?;
    intel::write(&tree, machine)
}

/// The majors of /proc/devices. Those of NVIDIA's that are not 195 are given out when its modules are loaded.
fn devices(machine: &Machine) -> String {
    let nvidia = if machine.nvidia.is_empty() {
        ""
    } else {
        "195 nvidia\n195 nvidiactl\n234 nvidia-caps-imex-channels\n235 nvidia-caps\n507 nvidia-uvm\n"
    };
    let amd = if machine.amd.is_empty() { "" } else { "238 kfd\n" };
    format!("Character devices:\n  1 mem\n  5 /dev/tty\n{nvidia}226 drm\n{amd}\nBlock devices:\n  7 loop\n")
}
