//! Simulated hosts with GPUs, for tests.
//!
//! [`make`] writes the files of the drivers of a [`model::Machine`] in /proc, /sys and /dev, their libraries and
//! programs, to a directory for `JOBC_DRIVER_ROOT`. [`nvml::build`] adds a library that answers like NVML. The formats
//! are from the drivers' sources and from published outputs; no driver wrote them.
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

pub use model::FakeHost;
pub use tree::{Nodes, Tree};

/// Writes the files of a simulated host into a directory that is empty or not there, without NVML.
pub fn write_host(machine: &FakeHost, directory: &Path, nodes: Nodes) -> io::Result<()> {
    let tree = Tree::new(directory, nodes);
    tree.file("proc/devices", &devices(machine))?;
    tree.directory("sys/bus/pci/devices")?;
    tree.directory("dev")?;
    nvidia::write(&tree, machine)?;
    amd::write(&tree, machine)?;
    intel::write(&tree, machine)
}

/// The majors of /proc/devices. Those of NVIDIA's that are not 195 are given out when its modules are loaded.
fn devices(machine: &FakeHost) -> String {
    let nvidia = if machine.nvidia.is_empty() {
        ""
    } else {
        "195 nvidia\n195 nvidiactl\n234 nvidia-caps-imex-channels\n235 nvidia-caps\n507 nvidia-uvm\n"
    };
    let amd = if machine.amd.is_empty() { "" } else { "238 kfd\n" };
    format!("Character devices:\n  1 mem\n  5 /dev/tty\n{nvidia}226 drm\n{amd}\nBlock devices:\n  7 loop\n")
}
