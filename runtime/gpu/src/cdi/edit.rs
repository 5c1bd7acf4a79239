//! Applies the edits of a CDI file to a container's configuration (SPEC.md, "OCI Edits").
//!
//! Fields of a device node that a file leaves out are read from the host's node now: majors are assigned when a driver
//! is loaded, and a file may be from an earlier boot. As root, nodes are created and allowed in the device cgroup. In a
//! user namespace, where nodes cannot be created, the host's nodes are bound; nodes that are not bound do not exist.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

use oci_spec::runtime::{
    Hook as OciHook, HookBuilder, LinuxDevice, LinuxDeviceCgroup, LinuxDeviceCgroupBuilder, LinuxDeviceType,
    LinuxNamespaceType, Mount as OciMount, Spec,
};

use super::{Edits, Hook, Mount, Node};
use jobc_sys::error::{Error, Kind, Result};

/// Changes a configuration; returns notes for the user, one per line.
///
/// # Errors
///
/// A file or device that is missing on this host, or an edit that this runtime does not support.
pub fn apply(edits: &Edits, spec: &mut Spec) -> Result<Vec<String>> {
    reject_unsupported(edits)?;
    let mut notes = Vec::new();
    let bound = is_in_user_namespace(spec);
    for item in &edits.env {
        set_variable(spec, item);
    }
    for node in &edits.device_nodes {
        add_node(spec, node, bound, &mut notes)?;
    }
    for mount in &edits.mounts {
        let mount = mount_of(mount)?;
        add_mount(spec, mount);
    }
    for hook in &edits.hooks {
        add_hook(spec, &hook.hook_name, hook_of(hook));
    }
    add_groups(spec, &edits.additional_gids, &mut notes);
    Ok(notes)
}

fn reject_unsupported(edits: &Edits) -> Result<()> {
    let refused = |what: &str, why: &str, help: &str| {
        let message = format!("the CDI file of the devices requests `{what}`, but {why}");
        Err(Error::new(Kind::Unsupported, message).help(help))
    };
    if edits.intel_rdt.is_some() {
        return refused(
            "intelRdt",
            "cache and memory bandwidth classes are not supported",
            "use `--gpu-injection generated`, or take it out of the file",
        );
    }
    if !edits.net_devices.is_empty() {
        return refused(
            "netDevices",
            "network devices are not moved here",
            "move them into a network namespace yourself",
        );
    }
    Ok(())
}

/// Whether the container's devices belong to a user namespace that is not the host's first.
pub(crate) fn is_in_user_namespace(spec: &Spec) -> bool {
    let namespaces = spec.linux().as_ref().and_then(|linux| linux.namespaces().as_ref());
    let own = namespaces.into_iter().flatten().any(|namespace| namespace.typ() == LinuxNamespaceType::User);
    own || jobc_sys::host::needs_user_namespace() || jobc_sys::host::in_user_namespace()
}

/// Sets a variable, `NAME=value`, instead of one of that name.
pub(crate) fn set_variable(spec: &mut Spec, item: &str) {
    let name = |item: &str| item.split('=').next().unwrap_or_default().to_owned();
    let mut process = spec.process().clone().unwrap_or_default();
    let env = process.env_mut().get_or_insert_default();
    match env.iter_mut().find(|there| name(there) == name(item)) {
        Some(there) => item.clone_into(there),
        None => env.push(item.to_owned()),
    }
    spec.set_process(Some(process));
}

/// The node at a device's path on the host.
struct HostNode {
    kind: LinuxDeviceType,
    major: u32,
    minor: u32,
    mode: u32,
}

fn host_node(path: &Path) -> Option<HostNode> {
    let data = fs::metadata(path).ok()?;
    let kind = match data.file_type() {
        kind if kind.is_char_device() => LinuxDeviceType::C,
        kind if kind.is_block_device() => LinuxDeviceType::B,
        kind if kind.is_fifo() => LinuxDeviceType::P,
        _ => return None,
    };
    let (major, minor) = (rustix::fs::major(data.rdev()), rustix::fs::minor(data.rdev()));
    Some(HostNode { kind, major, minor, mode: data.mode() & 0o777 })
}

fn add_node(spec: &mut Spec, node: &Node, bound: bool, notes: &mut Vec<String>) -> Result<()> {
    let source = node.host_path.as_ref().unwrap_or(&node.path);
    let written = match node.kind.as_deref() {
        Some("b") => Some(LinuxDeviceType::B),
        Some("c" | "u") => Some(LinuxDeviceType::C),
        Some("p") => Some(LinuxDeviceType::P),
        _ => None,
    };
    let number = |number: Option<i64>| number.and_then(|number| u32::try_from(number).ok());
    let real = match (host_node(source), written, number(node.major), number(node.minor)) {
        (Some(real), ..) => real,
        (None, Some(kind), Some(major), Some(minor)) if !bound => {
            HostNode { kind, major, minor, mode: 0o666 }
        }
        _ => {
            let what = if source.exists() { "is not a device node" } else { "does not exist" };
            return Err(Error::new(Kind::System, format!("the device `{}` {what}", source.display()))
                .help("see `jobc gpu ls`; a CDI file may be older than the driver"));
        }
    };
    let access = match node.permissions.as_deref() {
        None | Some("") => "rwm",
        Some("none") => "",
        Some(letters) => letters,
    };
    if bound {
        if !(access.contains('r') && access.contains('w')) {
            notes.push(format!(
                "`{}` should allow only the access `{access}`, which is not enforced in a user namespace",
                node.path.display()
            ));
        }
        let mut mount = OciMount::default();
        mount
            .set_destination(node.path.clone())
            .set_typ(Some("bind".to_owned()))
            .set_source(Some(source.clone()))
            .set_options(Some(["bind", "nosuid", "noexec"].map(str::to_owned).to_vec()));
        add_mount(spec, mount);
    } else {
        let user = spec.process().as_ref().map(|process| (process.user().uid(), process.user().gid()));
        let (uid, gid) = user.unwrap_or_default();
        let mut device = LinuxDevice::default();
        device
            .set_path(node.path.clone())
            .set_typ(real.kind)
            .set_major(real.major.into())
            .set_minor(real.minor.into())
            .set_file_mode(Some(node.file_mode.unwrap_or(real.mode) & 0o777))
            .set_uid(Some(node.uid.unwrap_or(uid)))
            .set_gid(Some(node.gid.unwrap_or(gid)));
        let mut linux = spec.linux().clone().unwrap_or_default();
        let devices = linux.devices_mut().get_or_insert_default();
        devices.retain(|there| *there.path() != node.path);
        devices.push(device);
        spec.set_linux(Some(linux));
    }
    if real.kind != LinuxDeviceType::P && !access.is_empty() {
        allow(spec, &real, access);
    }
    Ok(())
}

/// Allows a device in the device cgroup, once.
fn allow(spec: &mut Spec, real: &HostNode, access: &str) {
    let rule = LinuxDeviceCgroupBuilder::default()
        .allow(true)
        .typ(real.kind)
        .major(i64::from(real.major))
        .minor(i64::from(real.minor))
        .access(access)
        .build();
    // The builder refuses missing fields only.
    let Ok(rule) = rule else { return };
    let mut linux = spec.linux().clone().unwrap_or_default();
    let mut resources = linux.resources().clone().unwrap_or_default();
    let mut rules: Vec<LinuxDeviceCgroup> = resources.devices().clone().unwrap_or_default();
    if !rules.contains(&rule) {
        rules.push(rule);
    }
    resources.set_devices(Some(rules));
    linux.set_resources(Some(resources));
    spec.set_linux(Some(linux));
}

fn mount_of(mount: &Mount) -> Result<OciMount> {
    let mut options = mount.options.clone();
    let is_bind = options.iter().any(|option| option == "bind" || option == "rbind");
    let kind = mount.kind.as_deref().filter(|kind| !kind.is_empty() && *kind != "none");
    if kind.is_none() && !is_bind {
        options.push("rbind".to_owned());
    }
    if kind.is_none_or(|kind| kind == "bind") && !mount.host_path.exists() {
        let message = format!("`{}`, which the devices need, does not exist", mount.host_path.display());
        return Err(Error::new(Kind::System, message).help(
            "the CDI file may be older than the driver: regenerate it, or use `--gpu-injection generated`",
        ));
    }
    let mut made = OciMount::default();
    made.set_destination(mount.container_path.clone())
        .set_typ(Some(kind.unwrap_or("bind").to_owned()))
        .set_source(Some(mount.host_path.clone()))
        .set_options(Some(options));
    Ok(made)
}

/// Adds a mount instead of one at the same path, and before those that lie below it.
pub(crate) fn add_mount(spec: &mut Spec, mount: OciMount) {
    let mounts = spec.mounts_mut().get_or_insert_default();
    mounts.retain(|there| there.destination() != mount.destination());
    let below = |there: &OciMount| there.destination().starts_with(mount.destination());
    let at = mounts.iter().position(below).unwrap_or(mounts.len());
    mounts.insert(at, mount);
}

fn hook_of(hook: &Hook) -> OciHook {
    let mut made = HookBuilder::default().path(&hook.path).build().unwrap_or_default();
    if !hook.args.is_empty() {
        made.set_args(Some(hook.args.clone()));
    }
    if !hook.env.is_empty() {
        made.set_env(Some(hook.env.clone()));
    }
    made.set_timeout(hook.timeout.filter(|seconds| *seconds > 0).map(i64::from));
    made
}

/// Adds a hook behind those of its stage.
pub(crate) fn add_hook(spec: &mut Spec, stage: &str, hook: OciHook) {
    let mut hooks = spec.hooks().clone().unwrap_or_default();
    let list = match stage {
        #[allow(deprecated)] // NVIDIA's hook is one
        "prestart" => hooks.prestart_mut(),
        "createRuntime" => hooks.create_runtime_mut(),
        "createContainer" => hooks.create_container_mut(),
        "startContainer" => hooks.start_container_mut(),
        "poststart" => hooks.poststart_mut(),
        _ => hooks.poststop_mut(),
    };
    list.get_or_insert_default().push(hook);
    spec.set_hooks(Some(hooks));
}

/// Adds groups of the host to those of the program, by the numbers that they have in the container.
fn add_groups(spec: &mut Spec, groups: &[u32], notes: &mut Vec<String>) {
    if groups.is_empty() {
        return;
    }
    let mappings = spec.linux().as_ref().and_then(|linux| linux.gid_mappings().clone());
    let inside = |outside: u32| match &mappings {
        Some(mappings) if !mappings.is_empty() => mappings.iter().find_map(|map| {
            let at = outside.checked_sub(map.host_id()).filter(|at| *at < map.size())?;
            Some(map.container_id() + at)
        }),
        _ => Some(outside),
    };
    let mut process = spec.process().clone().unwrap_or_default();
    let mut user = process.user().clone();
    let mut all = user.additional_gids().clone().unwrap_or_default();
    for group in groups {
        match inside(*group) {
            Some(group) if group == user.gid() || all.contains(&group) => {}
            Some(group) => all.push(group),
            None => notes.push(format!(
                "group {group} of the host, which owns the devices, is not mapped in the container: access may be denied"
            )),
        }
    }
    user.set_additional_gids(Some(all));
    process.set_user(user);
    spec.set_process(Some(process));
}
