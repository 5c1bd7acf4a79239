//! A CDI description of this host's cards, from their drivers' files as they are now.
//!
//! Applied to a container's configuration, it is how this program injects devices that no CDI file of the host
//! describes; as a file (`jobc gpu cdi`) it injects them with podman, Docker, containerd and CRI-O too.

use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use jobc_schema::gpu::{DriverCapability, Vendor};

use super::{Device, Edits, Hook, Mount, Node, Spec, check};
use crate::files::{self, DriverFile};
use crate::hook::HookRequest;
use crate::host::Host;
use crate::inventory::{DeviceId, Gpu, Inventory};
use crate::libraries::{Libraries, is_wanted};
use jobc_sys::error::{Error, Kind, Result};

/// The files of NVIDIA's driver, found once.
#[derive(Clone, Debug, Default)]
pub struct DriverFiles {
    release: Option<String>,
    libraries: Libraries,
    other_files: Vec<DriverFile>,
}

impl DriverFiles {
    /// Finds the files of the loaded driver; `None` without a driver.
    pub fn of(machine: &Host, inventory: &Inventory) -> Self {
        let Some(driver) = &inventory.driver else { return Self::default() };
        Self {
            release: Some(driver.version.clone()),
            libraries: Libraries::of(machine, &driver.version),
            other_files: files::of(machine, &driver.version),
        }
    }

    /// The directories that programs on the host's own files need to find them: for `LD_LIBRARY_PATH`, and for `PATH`.
    pub fn unsearched_directories(&self) -> (&[PathBuf], Vec<&Path>) {
        let moved = self
            .other_files
            .iter()
            .filter(|file| file.path != file.container_path && file.container_path.starts_with("/usr/bin"));
        let mut directories: Vec<&Path> = moved.filter_map(|file| file.path.parent()).collect();
        directories.dedup();
        (&self.libraries.unsearched_directories, directories)
    }

    /// Whether CUDA's own library is among them, without which no program can use a card.
    pub fn has_cuda(&self) -> bool {
        let name = |path: &Path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libcuda.so"))
        };
        self.libraries.files.iter().any(|library| !library.is_32_bit && name(&library.path))
    }
}

/// The inputs of a description.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Where the drivers are.
    pub host: &'a Host,
    /// The cards.
    pub inventory: &'a Inventory,
    /// The driver's files; nothing where containers have them already.
    pub files: Option<&'a DriverFiles>,
    /// The files of the driver that containers use.
    pub capabilities: &'a [DriverCapability],
}

impl Source<'_> {
    /// The edits of a container with these devices.
    ///
    /// # Errors
    ///
    /// This program's own file cannot be named, for the hook.
    pub fn edits(&self, devices: &[DeviceId]) -> Result<Edits> {
        let mut edits = Edits::default();
        for vendor in [Vendor::Nvidia, Vendor::Amd, Vendor::Intel] {
            if devices.iter().any(|device| device.vendor == vendor) {
                edits.extend(&self.common_edits(vendor)?);
            }
        }
        for device in devices {
            for node in self.device_nodes(*device) {
                if !edits.device_nodes.contains(&node) {
                    edits.device_nodes.push(node);
                }
            }
        }
        edits.additional_gids = groups(&edits.device_nodes);
        Ok(edits)
    }

    /// The files of NVIDIA's driver that containers get without a device node.
    ///
    /// # Errors
    ///
    /// This program's own file cannot be named.
    pub fn driver_edits(&self) -> Result<Edits> {
        Ok(Edits {
            device_nodes: Vec::new(),
            additional_gids: Vec::new(),
            ..self.common_edits(Vendor::Nvidia)?
        })
    }

    /// A file that describes a vendor's cards: each under its number and its UUID, and `all`.
    ///
    /// # Errors
    ///
    /// There is none of the vendor's, or this program's own file cannot be named.
    pub fn spec(&self, vendor: Vendor) -> Result<Spec> {
        let ids: Vec<DeviceId> =
            self.inventory.devices().into_iter().filter(|device| device.vendor == vendor).collect();
        if ids.is_empty() {
            return Err(Error::new(Kind::System, "no GPU to describe").help("see `jobc gpu ls`"));
        }
        let described = |name: String, nodes: Vec<Node>| {
            let container_edits =
                Edits { additional_gids: groups(&nodes), device_nodes: nodes, ..Edits::default() };
            Device { name, container_edits, ..Device::default() }
        };
        let (mut devices, mut all) = (Vec::new(), Vec::new());
        for id in ids {
            let nodes = self.device_nodes(id);
            let number = id.mig.map_or_else(|| id.gpu.to_string(), |mig| format!("{}:{mig}", id.gpu));
            let name = self.inventory.name(id);
            if name != number {
                devices.push(described(name, nodes.clone()));
            }
            devices.push(described(number, nodes.clone()));
            all.extend(nodes.into_iter().filter(|node| !all.contains(node)).collect::<Vec<_>>());
        }
        devices.push(described("all".to_owned(), all));
        devices.retain(|device| !device.container_edits.is_empty());
        let mut spec = Spec {
            kind: kind(vendor).unwrap_or_default().to_owned(),
            devices,
            container_edits: self.common_edits(vendor)?,
            ..Spec::default()
        };
        check::minimum_version(&spec).clone_into(&mut spec.cdi_version);
        Ok(spec)
    }

    /// The edits of a container with any device of a vendor.
    fn common_edits(&self, vendor: Vendor) -> Result<Edits> {
        let mut edits = Edits::default();
        match vendor {
            Vendor::Nvidia => {
                edits.env.push("NVIDIA_VISIBLE_DEVICES=void".to_owned());
                edits
                    .device_nodes
                    .extend(CONTROL_NODES.iter().filter_map(|path| node(self.host, Path::new(path))));
                edits.device_nodes.extend(node(self.host, Path::new(IMEX_CHANNEL)));
                let order = self.files.map(|files| self.add_files(&mut edits, files)).unwrap_or_default();
                if !order.is_empty() || self.host.has("/proc/driver/nvidia") {
                    edits.hooks.push(hook(&order)?);
                }
            }
            Vendor::Amd => edits.device_nodes.extend(node(self.host, Path::new("/dev/kfd"))),
            _ => {}
        }
        edits.additional_gids = groups(&edits.device_nodes);
        Ok(edits)
    }

    /// Adds mounts of the driver's files; returns what the hook must do for them.
    fn add_files(&self, edits: &mut Edits, files: &DriverFiles) -> HookRequest {
        let mut order = HookRequest { release: files.release.clone(), ..HookRequest::default() };
        let host = |path: &Path| self.host.path(path);
        let mut chosen = vec![None; files.libraries.files.len()];
        for (number, library) in files.libraries.serving(self.capabilities) {
            chosen[number] = Some(library.is_32_bit);
            edits.mounts.push(mount(host(&library.path), &library.path, LIBRARY_MOUNT_OPTIONS));
            let list = if library.is_32_bit { &mut order.libraries_32 } else { &mut order.libraries };
            if is_for_loader(&library.path) {
                list.push(library.path.clone());
            }
        }
        for link in &files.libraries.links {
            let Some(is_32_bit) = chosen[link.library] else { continue };
            order.links.push((link.path.clone(), link.target.clone()));
            let list = if is_32_bit { &mut order.libraries_32 } else { &mut order.libraries };
            if is_for_loader(&link.path) {
                list.push(link.path.clone());
            }
        }
        for file in files.other_files.iter().filter(|file| is_wanted(file.capability, self.capabilities)) {
            let options = if file.is_socket { SOCKET_MOUNT_OPTIONS } else { LIBRARY_MOUNT_OPTIONS };
            edits.mounts.push(mount(host(&file.path), &file.container_path, options));
        }
        order
    }

    /// The nodes of a device's own.
    fn device_nodes(&self, device: DeviceId) -> Vec<Node> {
        let Some(gpu) = self.inventory.gpu(device) else { return vec![] };
        let draws = device.mig.is_none()
            && [DriverCapability::Graphics, DriverCapability::Display]
                .iter()
                .any(|one| is_wanted(*one, self.capabilities));
        let caps = self.inventory.mig(device).map(|mig| mig.caps.as_slice()).unwrap_or_default();
        let nodes = gpu
            .nodes
            .iter()
            .filter(|path| device.vendor != Vendor::Nvidia || draws || !path.starts_with("/dev/dri"));
        nodes.chain(caps).filter_map(|path| node(self.host, path)).collect()
    }
}

/// The CDI kind that a vendor's own tool uses for its cards; `None` for vendors that are not detected on a host.
pub(crate) fn kind(vendor: Vendor) -> Option<&'static str> {
    Some(match vendor {
        Vendor::Nvidia => "nvidia.com/gpu",
        Vendor::Amd => "amd.com/gpu",
        Vendor::Intel => "intel.com/gpu",
        _ => return None,
    })
}

/// The nodes that every program has that uses NVIDIA's cards.
const CONTROL_NODES: [&str; 4] =
    ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset"];

/// The channel by which hosts of one NVLink domain share memory, where an administrator has made it.
const IMEX_CHANNEL: &str = "/dev/nvidia-caps-imex-channels/channel0";

const LIBRARY_MOUNT_OPTIONS: &[&str] = &["ro", "nosuid", "nodev", "rbind", "rprivate"];
const SOCKET_MOUNT_OPTIONS: &[&str] = &["nosuid", "nodev", "noexec", "rbind", "rprivate"];

fn mount(host_path: PathBuf, path: &Path, options: &[&str]) -> Mount {
    Mount {
        host_path,
        container_path: path.to_owned(),
        kind: None,
        options: options.iter().map(|option| (*option).to_owned()).collect(),
    }
}

/// A file or directory of the host at its own place.
pub(crate) fn file_mount(machine: &Host, path: &Path) -> Mount {
    mount(machine.path(path), path, LIBRARY_MOUNT_OPTIONS)
}

/// Whether programs find it by its name, without a special directory.
fn is_for_loader(path: &Path) -> bool {
    let directory = path.parent().and_then(Path::file_name).unwrap_or_default();
    !["gbm", "vdpau"].iter().any(|own| directory == *own)
}

/// The hook that completes a container: this very program.
fn hook(order: &HookRequest) -> Result<Hook> {
    let program = std::fs::read_link("/proc/self/exe").map_err(|error| {
        Error::new(Kind::System, format!("cannot find the executable of this program: {error}"))
    })?;
    if !program.is_file() {
        let message = format!("the executable `{}` of this program no longer exists", program.display());
        return Err(Error::new(Kind::System, message).help(
            "it was replaced while it runs: restart it; containers with GPUs use this program as a hook",
        ));
    }
    Ok(Hook {
        hook_name: "createContainer".to_owned(),
        path: program,
        args: order.arguments(),
        ..Hook::default()
    })
}

/// A node on the host, with its real path; `None` if it does not exist.
pub(crate) fn node(machine: &Host, path: &Path) -> Option<Node> {
    let real = machine.path(path);
    let kind = std::fs::metadata(&real).ok()?.file_type();
    if !kind.is_char_device() && !kind.is_block_device() {
        return None;
    }
    let host_path = (real != path).then_some(real);
    Some(Node { path: path.to_owned(), host_path, ..Node::default() })
}

/// The groups that can open nodes which are not world-accessible.
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

/// The device-specific nodes without which a device cannot be used.
pub(crate) fn needed_nodes(inventory: &Inventory, device: DeviceId) -> Vec<PathBuf> {
    let Some(gpu) = inventory.gpu(device) else { return vec![] };
    let caps = inventory.mig(device).map(|mig| mig.caps.as_slice()).unwrap_or_default();
    first_node(gpu).into_iter().chain(caps).cloned().collect()
}

fn first_node(gpu: &Gpu) -> Option<&PathBuf> {
    gpu.nodes.iter().find(|node| match gpu.vendor {
        Vendor::Nvidia => !node.starts_with("/dev/dri"),
        _ => node.to_string_lossy().contains("render"),
    })
}
