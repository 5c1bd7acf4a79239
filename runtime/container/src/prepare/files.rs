//! The file system of the process: root, mounts, devices, terminal, hidden and read-only paths.

mod cgroups;
mod root;

use std::ffi::CString;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use linux_raw_sys::general::{
    MOUNT_ATTR_NOSUID, MOUNT_ATTR_RDONLY, MOUNT_ATTR_STRICTATIME, MS_PRIVATE, MS_SHARED, MS_SLAVE,
};
use oci_spec::runtime::{LinuxDevice, LinuxDeviceType, Spec};

use super::cgroups::CgroupView;
use super::hooks::{list_hooks, parent_hooks};
use super::identity::Identity;
use super::steps::{Steps, c_string};
use crate::bundle::Bundle;
use crate::child::path::{ContainerPath, TargetKind};
use crate::child::report::Gate;
use crate::config::mount_options::{MountOptions, Propagation, Recursive};
use crate::config::sysctl::{self, Parameter};
use crate::devices::{self, DeviceNode};
use crate::labels::{self, Field, Label};
use crate::mounts::id_mapped::{IdMapSource, IdMappedMount};
use crate::mounts::{Mount, Source, TreeCopy};
use crate::namespaces::Namespace;
use crate::operation::Operation;
use crate::options::Options;
use crate::root::Root;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::id_map::{self, IdMaps};
use jobc_sys::syscall::MountAttributes;

pub(super) fn list(
    steps: &mut Steps,
    bundle: &Bundle,
    root: &Root,
    options: &mut Options,
    groups: Option<&CgroupView<'_>>,
    identity: &Identity,
    label: Option<&Label>,
) -> Result<()> {
    let spec = &bundle.config.spec;
    let linux = spec.linux().as_ref();
    let mut mount_label = labels::mount_label(linux)?;
    if mount_label.is_some() && !Field::MountLabel.is_module_enabled() {
        steps.warn("/linux/mountLabel", "SELinux is not enabled in this kernel, ignored");
        mount_label = None;
    }
    let root_propagation =
        linux.and_then(|linux| linux.rootfs_propagation().as_deref()).and_then(Propagation::of);
    let machine = propagation(spec, root_propagation);
    steps.push(Operation::SetPropagation(machine));
    root::list(steps, root, identity.in_user_namespace, options.layers.as_ref())?;

    let mut mounts = mounts(steps, bundle, groups, identity, machine, root_propagation)?;
    for (_, operation) in &mut mounts {
        set_label(operation, mount_label.as_ref());
    }
    let read_only_dev = mounts.iter_mut().find_map(|(index, operation)| {
        allow_dev_to_be_filled(operation).then(|| format!("/mounts/{index}/options"))
    });
    let brought =
        mounts.iter().find(|(_, operation)| path_of(operation).is_some_and(|place| place == c"dev"));
    let machine_dev = brought.is_some_and(|(_, operation)| {
        matches!(operation, Operation::Mount(Mount { source: Source::Bind { .. }, .. }))
    });
    if brought.is_none() {
        let mut dev = Operation::Mount(fresh_dev()?);
        set_label(&mut dev, mount_label.as_ref());
        steps.push(dev);
    }
    for (index, operation) in mounts {
        steps.push_at(format!("/mounts/{index}"), operation);
    }
    if !machine_dev {
        list_devices(steps, spec)?;
    }
    if let Some(console) = console(spec, options)? {
        steps.push_at("/process/terminal", Operation::OpenConsole(console));
    }
    if parent_hooks(spec) {
        steps.push_at("/hooks", Operation::Wait(Gate::Hooks));
    }
    list_hooks(steps, bundle, options, "createContainer", None)?;
    if let Some(process) = spec.process().as_ref().filter(|process| process.cwd() != Path::new("/")) {
        steps.push_at(
            "/process/cwd",
            Operation::MakeDirectory(container_path(process.cwd(), "/process/cwd")?),
        );
    }
    if let Some(at) = read_only_dev {
        let dev = container_path(Path::new("/dev"), &at)?;
        steps.push_at(at, Operation::ReadOnlyMount(dev));
    }
    list_masked_paths(steps, spec)?;
    let parameters =
        linux.map(sysctl::from_config).transpose().map_err(|errors| first_error(errors, "/linux/sysctl"))?;
    for Parameter { path, value, pointer: place } in parameters.unwrap_or_default() {
        steps.push_at(place, Operation::SetKernelParameter(path, value));
    }
    if spec.root().as_ref().is_some_and(|root| root.readonly().unwrap_or(false)) {
        steps.push_at("/root/readonly", Operation::ReadOnlyRoot(root::writable_parts(root, spec)?));
    }
    if let Some(label) = label {
        // Through the host's /proc, while it is still mounted.
        let (place, attributes) = label.attributes();
        steps.push_at(place, Operation::OpenAttributes(attributes));
    }
    steps.push(Operation::PivotRoot);
    if let Some(change) = root_propagation {
        // A shared mount cannot become the root (pivot_root(2)).
        steps.push_at("/linux/rootfsPropagation", Operation::SetRootPropagation(change.flag.into()));
    }
    Ok(())
}

/// The propagation of the host's mounts in the new namespace: cut off, or one way where a mount wants to see more.
fn propagation(spec: &Spec, root: Option<Propagation>) -> u64 {
    let follows = |change: Propagation| change.flag != MS_PRIVATE;
    let mounts = spec.mounts().iter().flatten().flat_map(|mount| mount.options().iter().flatten());
    if root.is_some_and(follows) || mounts.filter_map(|word| Propagation::of(word)).any(follows) {
        MS_SLAVE.into()
    } else {
        MS_PRIVATE.into()
    }
}

fn mounts(
    steps: &mut Steps,
    bundle: &Bundle,
    groups: Option<&CgroupView<'_>>,
    identity: &Identity,
    machine: u64,
    root: Option<Propagation>,
) -> Result<Vec<(usize, Operation)>> {
    let followed = machine != u64::from(MS_PRIVATE);
    let is_shared = |change: &Propagation| change.flag == MS_SHARED;
    let shows_mounts = root.as_ref().is_some_and(is_shared);
    let mut list = Vec::new();
    for (index, mount) in bundle.config.spec.mounts().iter().flatten().enumerate() {
        let at = format!("/mounts/{index}");
        let words = MountOptions::of(mount, &at).map_err(|errors| first_error(errors, &at))?;
        for word in &words.without_effect {
            steps.warn(&at, format_args!("`{word}` has no effect on a bind mount"));
        }
        let place = container_path(mount.destination(), &at)?;
        let kind = mount.typ().as_deref().unwrap_or(if words.bind.is_some() { "bind" } else { "none" });
        if words.bind.is_none() && matches!(kind, "cgroup" | "cgroup2") {
            let own = identity.own_namespaces.contains(&Namespace::Cgroup);
            match groups.and_then(|groups| cgroups::mount_operation(&place, kind, words.set, own, groups)) {
                Some(operation) => list.push((index, operation)),
                None => steps.warn(&at, "cgroups are not mounted: the container has none here"),
            }
            continue;
        }
        let mut parameters = words.data;
        let (source, last) = if let Some(recursive) = words.bind {
            let path = mount.source().clone().unwrap_or_default();
            let path = if path.is_relative() { bundle.dir.join(path) } else { path };
            let last = if path.is_dir() { TargetKind::Directory } else { TargetKind::File };
            let id_mapped = id_mapped(bundle, mount, words.id_map, identity, &at)?;
            let id_mapped = id_mapped.map(|(ids, recursive)| IdMappedMount::new(ids, recursive, machine));
            let linkless = bundle.linkless.contains(mount.destination());
            // A copy would show the target of the link.
            let others = if linkless || !rustix::process::geteuid().is_root() {
                None
            } else if identity.own_user_namespace {
                // As with runc: the user who starts the container can reach its volumes; its root may not.
                Some(TreeCopy::Spare { propagation: machine, tree: -1 })
            } else if shows_mounts && words.propagation.iter().any(is_shared) {
                Some(TreeCopy::Peer { tree: -1 })
            } else {
                None
            };
            (
                Source::Bind {
                    path: c_path(&path, &at)?,
                    recursive: recursive == Recursive::Yes,
                    linkless,
                    copy: id_mapped.map(TreeCopy::IdMapped).or(others),
                },
                last,
            )
        } else {
            if place.path.as_c_str() == c"dev" && !parameters.iter().any(|(key, _)| key.as_c_str() == c"mode")
            {
                // With tmpfs's own 1777 the kernel refuses to open bound nodes for writing (fs.protected_regular).
                parameters.push((c"mode".to_owned(), Some(c"0755".to_owned())));
            }
            if let Some(source) = mount.source().as_ref().filter(|source| !source.as_os_str().is_empty()) {
                parameters.insert(0, (c"source".to_owned(), Some(c_path(source, &at)?)));
            }
            (
                Source::New { kind: c_string(kind, &at)?, parameters, copy_up: words.copy_up },
                TargetKind::Directory,
            )
        };
        let changes = |set: u64, clear: u64| MountAttributes { set, clear, propagation: 0 };
        let below = changes(words.recursive_set, words.recursive_clear);
        list.push((
            index,
            Operation::Mount(Mount {
                target: place,
                target_kind: last,
                source,
                attributes: changes(words.set, words.clear),
                recursive_attributes: (below != MountAttributes::default()).then_some(below),
                // New mounts, and copies of private ones, are already private.
                propagation: if words.propagation.is_empty() && words.bind.is_some() && followed {
                    vec![Propagation { flag: MS_PRIVATE, recursive: Recursive::Yes }]
                } else {
                    words.propagation
                },
            }),
        ));
    }
    Ok(list)
}

/// The ID map of a bind mount, if it has one, and whether it applies to mounts below it too.
///
/// `word` is its option: without one, the mount's own maps count as `idmap`, as in runc.
fn id_mapped(
    bundle: &Bundle,
    mount: &oci_spec::runtime::Mount,
    word: Option<Recursive>,
    identity: &Identity,
    at: &str,
) -> Result<Option<(IdMapSource, bool)>> {
    let maps = IdMaps::of_mount(mount, at)?;
    if maps.is_none() && word.is_none() {
        return Ok(None);
    }
    if jobc_sys::host::needs_user_namespace() {
        return Err(Error::new(Kind::Unenforceable, "only root can id-map a mount")
            .at(at)
            .help("run it as root, or bind a directory that belongs to the ids of the container"));
    }
    let joined = identity.joined_before.iter().find(|join| join.kind == Namespace::User);
    let linux = bundle.config.spec.linux().as_ref();
    let ids = match (maps, joined) {
        (Some(maps), _) => IdMapSource::Maps(maps),
        (None, Some(join)) => IdMapSource::Namespace(join.fd),
        (None, None) => {
            let maps = linux.map(IdMaps::read).transpose()?.flatten();
            IdMapSource::Maps(maps.ok_or_else(|| id_map::missing_maps("/linux/uidMappings"))?)
        }
    };
    Ok(Some((ids, word == Some(Recursive::Yes))))
}

/// Gives a new file system the container's label.
fn set_label(operation: &mut Operation, label: Option<&CString>) {
    match operation {
        Operation::Mount(Mount { source: Source::New { kind, parameters, .. }, .. }) => {
            labels::add(label, kind, parameters);
        }
        Operation::MountCgroups(groups) => groups.label = label.cloned(),
        _ => {}
    }
}

/// The first of several errors: all of them were reported when the bundle was checked.
fn first_error(errors: Vec<Error>, at: &str) -> Error {
    errors
        .into_iter()
        .next()
        .unwrap_or_else(|| Error::new(Kind::Config, "the options cannot be preserved").at(at))
}

fn path_of(operation: &Operation) -> Option<&std::ffi::CStr> {
    match operation {
        Operation::Mount(mount) => Some(&mount.target.path),
        _ => None,
    }
}

/// Takes `ro` from a new /dev until its nodes are made; returns whether it had it.
fn allow_dev_to_be_filled(operation: &mut Operation) -> bool {
    let Operation::Mount(Mount { target, source: Source::New { .. }, attributes, .. }) = operation else {
        return false;
    };
    let read_only = u64::from(MOUNT_ATTR_RDONLY);
    let was = target.path.as_c_str() == c"dev" && attributes.set & read_only != 0;
    if was {
        attributes.set &= !read_only;
    }
    was
}

/// /dev where config.json mounts nothing there: nodes are never in the image.
fn fresh_dev() -> Result<Mount> {
    let text = |text: &std::ffi::CStr| Some(text.to_owned());
    Ok(Mount {
        target: container_path(Path::new("/dev"), "/mounts")?,
        target_kind: TargetKind::Directory,
        source: Source::New {
            kind: c"tmpfs".to_owned(),
            parameters: vec![(c"mode".to_owned(), text(c"0755")), (c"size".to_owned(), text(c"65536k"))],
            copy_up: false,
        },
        attributes: MountAttributes {
            set: u64::from(MOUNT_ATTR_NOSUID | MOUNT_ATTR_STRICTATIME),
            ..MountAttributes::default()
        },
        recursive_attributes: None,
        propagation: vec![],
    })
}

fn list_devices(steps: &mut Steps, spec: &Spec) -> Result<()> {
    let requested: Vec<&LinuxDevice> =
        spec.linux().as_ref().and_then(|linux| linux.devices().as_ref()).into_iter().flatten().collect();
    for (name, major, minor) in devices::DEFAULT_DEVICES {
        let path = PathBuf::from(format!("/dev/{name}"));
        if requested.iter().any(|device| *device.path() == path) {
            continue;
        }
        steps.push(Operation::MakeNode(DeviceNode {
            path: container_path(&path, "/linux/devices")?,
            source: c_path(&path, "/linux/devices")?,
            mode: 0o020_666,
            device: rustix::fs::makedev(major, minor),
            uid: 0,
            gid: 0,
        }));
    }
    for (index, device) in requested.into_iter().enumerate() {
        let at = format!("/linux/devices/{index}");
        let node = node(device, &at)?;
        steps.push_at(at, Operation::MakeNode(node));
    }
    for (target, name) in devices::DEFAULT_LINKS {
        let place = container_path(&Path::new("/dev").join(name), "/linux/devices")?;
        steps.push(Operation::Link { target: target.to_owned(), place });
    }
    Ok(())
}

fn node(device: &LinuxDevice, at: &str) -> Result<DeviceNode> {
    let kind = match device.typ() {
        LinuxDeviceType::B => 0o060_000,
        LinuxDeviceType::P => 0o010_000,
        _ => 0o020_000,
    };
    let number = |number: i64, field: &str| {
        u32::try_from(number).map_err(|_| {
            Error::new(Kind::Config, format!("`{number}` is not a device number")).at(format!("{at}/{field}"))
        })
    };
    let numbers = (number(device.major(), "major")?, number(device.minor(), "minor")?);
    Ok(DeviceNode {
        path: container_path(device.path(), at)?,
        source: c_path(device.path(), at)?,
        mode: kind | device.file_mode().unwrap_or(0o666) & 0o7777,
        device: if kind == 0o010_000 { 0 } else { rustix::fs::makedev(numbers.0, numbers.1) },
        uid: device.uid().unwrap_or(0),
        gid: device.gid().unwrap_or(0),
    })
}

fn console(spec: &Spec, options: &Options) -> Result<Option<crate::terminal::console::Console>> {
    let Some(process) = spec.process().as_ref().filter(|process| process.terminal().unwrap_or(false)) else {
        return Ok(None);
    };
    let Some(socket) = &options.console else {
        return Err(Error::new(Kind::Config, "`terminal` is true, but no console socket is given")
            .at("/process/terminal")
            .help("give `--console-socket`, or set `terminal` to false"));
    };
    let size = process.console_size().as_ref().map(|size| {
        (u16::try_from(size.height()).unwrap_or(u16::MAX), u16::try_from(size.width()).unwrap_or(u16::MAX))
    });
    Ok(Some(crate::terminal::console::Console {
        controlling: true,
        socket: socket.as_raw_fd(),
        size: options.window_size.or(size),
        uid: process.user().uid(),
        console: Some(container_path(Path::new("/dev/console"), "/process/terminal")?),
    }))
}

fn list_masked_paths(steps: &mut Steps, spec: &Spec) -> Result<()> {
    let Some(linux) = spec.linux() else { return Ok(()) };
    for (index, path) in linux.readonly_paths().iter().flatten().enumerate() {
        let at = format!("/linux/readonlyPaths/{index}");
        let place = masked_path(path, &at)?;
        steps.push_at(at, Operation::MakeReadOnly(place));
    }
    for (index, path) in linux.masked_paths().iter().flatten().enumerate() {
        let at = format!("/linux/maskedPaths/{index}");
        let place = masked_path(path, &at)?;
        steps.push_at(at, Operation::Mask(place));
    }
    Ok(())
}

fn masked_path(path: &str, at: &str) -> Result<ContainerPath> {
    container_path(Path::new(path), at)
}

fn container_path(path: &Path, at: &str) -> Result<ContainerPath> {
    ContainerPath::new(path)
        .ok_or_else(|| Error::new(Kind::Config, "a path contains a NUL byte").at(at).help("remove `\\u0000`"))
}

fn c_path(path: &Path, at: &str) -> Result<CString> {
    c_string(path.as_os_str().as_bytes(), at)
}
