//! Extra nodes that a task gets by variables of NVIDIA's contract: nodes that are not a card's own (container-toolkit,
//! `internal/modifier/gated.go`).

use std::path::{Path, PathBuf};

use oci_spec::runtime::Spec;

use super::environment::value;
use crate::cdi::generate::{file_mount, node};
use crate::cdi::{Edits, Node};
use crate::host::Host;

/// The feature that a variable with the value `enabled` requests.
struct RequestedExtra {
    variable: &'static str,
    /// Nodes by their directory and the beginning of their names.
    nodes: &'static [(&'static str, &'static str)],
    files: &'static [&'static str],
}

const EXTRAS: [RequestedExtra; 4] = [
    RequestedExtra {
        variable: "NVIDIA_GDS",
        nodes: &[("/dev", "nvidia-fs")],
        files: &["/run/udev", "/etc/cufile.json"],
    },
    RequestedExtra {
        variable: "NVIDIA_MOFED",
        nodes: &[("/dev/infiniband", "uverbs"), ("/dev/infiniband", "rdma_cm")],
        files: &[],
    },
    RequestedExtra { variable: "NVIDIA_GDRCOPY", nodes: &[("/dev", "gdrdrv")], files: &[] },
    RequestedExtra { variable: "NVIDIA_NVSWITCH", nodes: &[("/dev", "nvidia-nvswitch")], files: &[] },
];

/// The directory of the channels by which hosts of one NVLink domain share memory.
const IMEX_CHANNELS: &str = "/dev/nvidia-caps-imex-channels";

/// Adds what the task's variables ask for and the host has.
pub(super) fn add(edits: &mut Edits, machine: &Host, spec: &Spec) {
    for RequestedExtra { variable, nodes, files } in EXTRAS {
        if value(spec, variable) != Some("enabled") {
            continue;
        }
        for (directory, begin) in nodes {
            let names = machine.names(directory);
            let paths = names
                .iter()
                .filter(|name| name.starts_with(begin))
                .map(|name| Path::new(directory).join(name));
            edits.device_nodes.extend(paths.filter_map(|path| node(machine, &path)));
        }
        edits.mounts.extend(
            files
                .iter()
                .map(Path::new)
                .filter(|path| machine.has(path))
                .map(|path| file_mount(machine, path)),
        );
    }
    if let Some(channels) = value(spec, "NVIDIA_IMEX_CHANNELS") {
        let channel = |word: &str| {
            Some(PathBuf::from(format!("{IMEX_CHANNELS}/channel{}", word.trim().parse::<u32>().ok()?)))
        };
        let named: Vec<Node> =
            channels.split(',').filter_map(channel).filter_map(|path| node(machine, &path)).collect();
        edits.device_nodes.retain(|node| !node.path.starts_with(IMEX_CHANNELS));
        edits.device_nodes.extend(named);
    }
}
