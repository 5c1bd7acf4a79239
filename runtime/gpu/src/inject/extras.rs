//! What a task gets next to its cards where a variable of NVIDIA's contract asks for it: nodes that are not a card's
//! own (container-toolkit, `internal/modifier/gated.go`).

use std::path::{Path, PathBuf};

use oci_spec::runtime::Spec;

use super::environment::value;
use crate::cdi::generate::{file, node};
use crate::cdi::{Edits, Node};
use crate::machine::Machine;

/// What a variable with the value `enabled` requests.
struct Asked {
    variable: &'static str,
    /// Nodes by their directory and the beginning of their names.
    nodes: &'static [(&'static str, &'static str)],
    files: &'static [&'static str],
}

const ASKED: [Asked; 4] = [
    Asked {
        variable: "NVIDIA_GDS",
        nodes: &[("/dev", "nvidia-fs")],
        files: &["/run/udev", "/etc/cufile.json"],
    },
    Asked {
        variable: "NVIDIA_MOFED",
        nodes: &[("/dev/infiniband", "uverbs"), ("/dev/infiniband", "rdma_cm")],
        files: &[],
    },
    Asked { variable: "NVIDIA_GDRCOPY", nodes: &[("/dev", "gdrdrv")], files: &[] },
    Asked { variable: "NVIDIA_NVSWITCH", nodes: &[("/dev", "nvidia-nvswitch")], files: &[] },
];

/// The directory of the channels by which hosts of one NVLink domain share memory.
const CHANNELS: &str = "/dev/nvidia-caps-imex-channels";

/// Adds what the task's variables ask for and the host has.
pub(super) fn add(edits: &mut Edits, machine: &Machine, spec: &Spec) {
    for Asked { variable, nodes, files } in ASKED {
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
            files.iter().map(Path::new).filter(|path| machine.has(path)).map(|path| file(machine, path)),
        );
    }
    if let Some(channels) = value(spec, "NVIDIA_IMEX_CHANNELS") {
        let channel = |word: &str| {
            Some(PathBuf::from(format!("{CHANNELS}/channel{}", word.trim().parse::<u32>().ok()?)))
        };
        let named: Vec<Node> =
            channels.split(',').filter_map(channel).filter_map(|path| node(machine, &path)).collect();
        edits.device_nodes.retain(|node| !node.path.starts_with(CHANNELS));
        edits.device_nodes.extend(named);
    }
}
