//! The container's root: a directory, or the host's files under writable layers.

use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use linux_raw_sys::general::MOUNT_ATTR_RDONLY;
use oci_spec::runtime::Spec;
use rustix::fs::Mode;

use super::{c_path, container_path};
use crate::child::path::{ContainerPath, TargetKind};
use crate::mounts::{Mount, Source};
use crate::operation::Operation;
use crate::prepare::steps::{Steps, c_string};
use crate::root::{MAX_LOWER_LAYERS, Root, RootParts, UpperLayer};
use crate::rootfs::EnterRoot;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::syscall::MountAttributes;

const READ_ONLY: MountAttributes =
    MountAttributes { set: MOUNT_ATTR_RDONLY as u64, clear: 0, propagation: 0 };

/// Lists the steps that put the root together and enter it.
pub(super) fn list(
    steps: &mut Steps,
    root: &Root,
    in_user_namespace: bool,
    receiver: Option<&OwnedFd>,
) -> Result<()> {
    steps.push_at("/root/path", Operation::EnterRoot(enter(root, in_user_namespace)?));
    if let Some(socket) = receiver.filter(|_| !root.written().is_empty()) {
        steps.push(Operation::SendLayers(socket.as_raw_fd()));
    }
    if let Root::Overlay { binds, parts, .. } = root {
        for (index, (directory, _)) in parts.iter().flat_map(|parts| &parts.overlays).enumerate() {
            steps.push_at("/root/path", Operation::Mount(overlay(directory, index)?));
        }
        for bind in binds {
            steps.push_at("/root/path", Operation::Mount(host_directory(bind, parts.is_some())?));
        }
    }
    Ok(())
}

/// The writable directories of a root in parts, without those that a mount of config.json covers.
pub(super) fn writable_parts(root: &Root, spec: &Spec) -> Result<Vec<ContainerPath>> {
    let Root::Overlay { parts: Some(parts), .. } = root else { return Ok(vec![]) };
    let covers = spec.mounts().iter().flatten().map(|mount| container_path(mount.destination(), "/mounts"));
    let covers = covers.collect::<Result<Vec<ContainerPath>>>()?;
    let directories = parts.overlays.iter().map(|(directory, _)| container_path(directory, "/root/path"));
    let directories = directories.collect::<Result<Vec<ContainerPath>>>()?;
    Ok(directories
        .into_iter()
        .filter(|directory| !covers.iter().any(|cover| cover.path == directory.path))
        .collect())
}

fn enter(root: &Root, in_user_namespace: bool) -> Result<EnterRoot> {
    let (lowers, upper, on, parts) = match root {
        Root::Directory(path) => return Ok(EnterRoot::Directory { path: c_path(path, "/root/path")? }),
        Root::Overlay { lowers, upper, on, parts, .. } => (lowers, upper, c_path(on, "/root/path")?, parts),
    };
    let size = match upper {
        UpperLayer::Memory { size } => *size,
        UpperLayer::Directory(_) => None,
    };
    let size = size.map(|size| c_string(size.to_string(), "/root/path")).transpose()?;
    match (parts, &lowers[..], upper) {
        (Some(parts), _, _) => enter_parts(parts, on, size),
        (None, [lower], UpperLayer::Memory { .. }) => {
            Ok(EnterRoot::Overlay { lower: c_path(lower, "/root/path")?, on, size })
        }
        (None, lowers, _) => enter_layers(lowers, upper, on, size, in_user_namespace),
    }
}

/// An overlay of layers that are linked to by short names: the options of a mount are a page, and one is 255 bytes.
fn enter_layers(
    lowers: &[PathBuf],
    upper: &UpperLayer,
    on: CString,
    size: Option<CString>,
    in_user_namespace: bool,
) -> Result<EnterRoot> {
    if lowers.is_empty() || lowers.len() > MAX_LOWER_LAYERS {
        let message = format!("{} layers, but the kernel allows 1 to {MAX_LOWER_LAYERS}", lowers.len());
        return Err(Error::new(Kind::Unsupported, message).at("/root/path"));
    }
    let name = |index: usize| c_string(index.to_string(), "/root/path");
    let mut links = Vec::with_capacity(lowers.len() + 2);
    for (index, lower) in lowers.iter().enumerate() {
        links.push((c_path(lower, "/root/path")?, name(index)?));
    }
    let names: Vec<String> = (0..lowers.len()).rev().map(|index| index.to_string()).collect();
    let mut options = format!("lowerdir={},upperdir=upper,workdir=work", names.join(":"));
    if let UpperLayer::Directory(directory) = upper {
        for name in ["upper", "work"] {
            links.push((c_path(&directory.join(name), "/root/path")?, c_string(name, "/root/path")?));
        }
        // The upper directory is later read without this overlay: renamed directories are copied, and changed files are
        // complete.
        options.push_str(",redirect_dir=nofollow,metacopy=off,index=off,volatile");
    }
    if in_user_namespace {
        options.push_str(",userxattr");
    }
    Ok(EnterRoot::Layers { on, size, links, options: c_string(options, "/root/path")? })
}

/// The paths of a root in parts: `root` is what the container sees; next to it are two layers for each overlay.
fn enter_parts(parts: &RootParts, on: CString, size: Option<CString>) -> Result<EnterRoot> {
    let below =
        |path: &Path| c_path(&Path::new("root").join(path.strip_prefix("/").unwrap_or(path)), "/root/path");
    let mut directories = vec![(c"root".to_owned(), Mode::from_raw_mode(0o755))];
    for (path, bits) in &parts.directories {
        directories.push((below(path)?, Mode::from_raw_mode(*bits)));
    }
    for (index, (path, bits)) in parts.overlays.iter().enumerate() {
        let bits = Mode::from_raw_mode(*bits);
        directories.push((below(path)?, bits));
        // The upper layer's bits are those that are seen.
        directories.push((c_string(format!("upper{index}"), "/root/path")?, bits));
        directories.push((c_string(format!("work{index}"), "/root/path")?, Mode::RWXU));
    }
    let links = parts.links.iter().map(|(path, target)| Ok((c_path(target, "/root/path")?, below(path)?)));
    Ok(EnterRoot::Parts { on, size, directories, links: links.collect::<Result<_>>()? })
}

/// The overlay of one part of the root; its layers are in the working directory.
fn overlay(directory: &Path, index: usize) -> Result<Mount> {
    let parameter = |key: &CStr, value: String| -> Result<_> {
        Ok((key.to_owned(), Some(c_string(value, "/root/path")?)))
    };
    let lower = (c"lowerdir".to_owned(), Some(c_path(directory, "/root/path")?));
    let parameters = vec![
        lower,
        parameter(c"upperdir", format!("upper{index}"))?,
        parameter(c"workdir", format!("work{index}"))?,
        (c"userxattr".to_owned(), None),
    ];
    Ok(Mount {
        target: container_path(directory, "/root/path")?,
        target_kind: TargetKind::Directory,
        source: Source::New { kind: c"overlay".to_owned(), parameters, copy_up: false },
        attributes: MountAttributes::default(),
        recursive_attributes: None,
        propagation: vec![],
    })
}

/// A mount of the host below its root, shown read-only in the overlay; with all below it where it is `locked` to
/// them.
fn host_directory(path: &Path, locked: bool) -> Result<Mount> {
    Ok(Mount {
        target: container_path(path, "/root/path")?,
        target_kind: if path.is_dir() { TargetKind::Directory } else { TargetKind::File },
        source: Source::Bind {
            path: c_path(path, "/root/path")?,
            recursive: locked,
            linkless: false,
            copy: None,
        },
        attributes: READ_ONLY,
        recursive_attributes: locked.then_some(READ_ONLY),
        propagation: vec![],
    })
}
