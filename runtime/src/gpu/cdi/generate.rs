//! A CDI description of this machine's cards, from their drivers' files as they are now.

use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

use jobc_schema::gpu::{DriverCapability, Vendor};

use super::{Edits, Node};
use crate::gpu::machine::Machine;
use crate::gpu::{DeviceId, Inventory};

/// What a container gets that is given these devices.
pub fn edits(
    machine: &Machine,
    inventory: &Inventory,
    devices: &[DeviceId],
    capabilities: &[DriverCapability],
) -> Edits {
    let mut edits = Edits::default();
    if devices.iter().any(|device| device.vendor == Vendor::Nvidia) {
        edits.env.push("NVIDIA_VISIBLE_DEVICES=void".to_owned());
        edits.device_nodes.extend(control(machine));
    }
    if devices.iter().any(|device| device.vendor == Vendor::Amd) {
        edits.device_nodes.extend(node(machine, Path::new("/dev/kfd")));
    }
    for device in devices {
        for own in own(machine, inventory, *device, capabilities) {
            if !edits.device_nodes.contains(&own) {
                edits.device_nodes.push(own);
            }
        }
    }
    edits.additional_gids = groups(&edits.device_nodes);
    edits
}

/// The nodes that every program needs that uses NVIDIA's cards.
const CONTROL: [&str; 4] =
    ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset"];

fn control(machine: &Machine) -> impl Iterator<Item = Node> {
    CONTROL.into_iter().filter_map(|path| node(machine, Path::new(path)))
}

/// The nodes of a device's own.
fn own(
    machine: &Machine,
    inventory: &Inventory,
    device: DeviceId,
    capabilities: &[DriverCapability],
) -> Vec<Node> {
    let Some(gpu) = inventory.gpu(device) else { return vec![] };
    let draws = device.mig.is_none() && capabilities.iter().any(|capability| DRAWING.contains(capability));
    let shown = |path: &&std::path::PathBuf| {
        device.vendor != Vendor::Nvidia || draws || !path.starts_with("/dev/dri")
    };
    let caps = inventory.mig(device).map(|mig| mig.caps.as_slice()).unwrap_or_default();
    gpu.nodes.iter().filter(shown).chain(caps).filter_map(|path| node(machine, path)).collect()
}

/// What uses the nodes of /dev/dri of NVIDIA's cards.
const DRAWING: [DriverCapability; 3] =
    [DriverCapability::Graphics, DriverCapability::Display, DriverCapability::All];

/// A node that is on the machine, with where it is there; nothing where there is none.
pub(super) fn node(machine: &Machine, path: &Path) -> Option<Node> {
    let real = machine.path(path);
    let data = std::fs::metadata(&real).ok()?;
    let kind = data.file_type();
    if !kind.is_char_device() && !kind.is_block_device() {
        return None;
    }
    let host_path = (real != path).then_some(real);
    Some(Node { path: path.to_owned(), host_path, ..Node::default() })
}

/// The groups that may open nodes which not everybody may.
fn groups(nodes: &[Node]) -> Vec<u32> {
    let mut groups = Vec::new();
    for node in nodes {
        let Ok(data) = std::fs::metadata(node.host_path.as_ref().unwrap_or(&node.path)) else { continue };
        let closed = data.mode() & 0o006 != 0o006 && data.mode() & 0o060 == 0o060;
        if closed && data.gid() != 0 && !groups.contains(&data.gid()) {
            groups.push(data.gid());
        }
    }
    groups
}

/// The nodes without which a device cannot be used, of those that are its own alone.
pub(in crate::gpu) fn needed_nodes(inventory: &Inventory, device: DeviceId) -> Vec<std::path::PathBuf> {
    let Some(gpu) = inventory.gpu(device) else { return vec![] };
    let caps = inventory.mig(device).map(|mig| mig.caps.as_slice()).unwrap_or_default();
    let first = match device.vendor {
        Vendor::Nvidia => gpu.nodes.iter().find(|node| !node.starts_with("/dev/dri")),
        _ => gpu.nodes.iter().find(|node| node.to_string_lossy().contains("render")),
    };
    first.into_iter().chain(caps).cloned().collect()
}
