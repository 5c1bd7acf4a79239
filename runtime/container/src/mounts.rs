//! Mounts: config.json's list, as steps that go by file descriptor.
//!
//! A mount is made detached (fsopen(2), or open_tree(2) for a bind), gets its attributes there, and is then put upon a
//! target that was resolved inside the root. So no path is looked up twice, and none is looked up in between.

pub mod cgroups;
mod copy_up;
pub mod id_mapped;
mod single_call;

use std::ffi::{CStr, CString};
use std::fmt;

use linux_raw_sys::general::{
    MOUNT_ATTR_NODEV, MOUNT_ATTR_NOEXEC, MOUNT_ATTR_NOSUID, MOUNT_ATTR_RDONLY, MS_PRIVATE, MS_SHARED,
    MS_SLAVE, MS_UNBINDABLE,
};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::child::Child;
use crate::child::path::{ContainerPath, TargetKind};
use crate::config::mount_options::{Propagation, Recursive};
use crate::mounts::id_mapped::IdMappedMount;
use jobc_sys::syscall::{CWD, Fd, Kernel, MountAttributes};

/// A mount below the container's root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Where it is put.
    pub target: ContainerPath,
    /// The type with which the mount point is created if it is missing.
    pub target_kind: TargetKind,
    /// The source of the mount.
    pub source: Source,
    /// Changes of the mount's attributes; for a new file system only those to set.
    pub attributes: MountAttributes,
    /// Changes of the attributes of the mount and of all below it, made first.
    pub recursive_attributes: Option<MountAttributes>,
    /// Changes of propagation, in order.
    pub propagation: Vec<Propagation>,
}

/// What a mount shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A new file system.
    New {
        /// Its type, such as `tmpfs`.
        kind: CString,
        /// Flags and parameters for fsconfig(2).
        parameters: Vec<(CString, Option<CString>)>,
        /// Whether what the image has at the place is copied into it first.
        copy_up: bool,
    },
    /// A part of the host's tree.
    Bind {
        /// An absolute path of the host.
        path: CString,
        /// Whether the mounts below it come along.
        recursive: bool,
        /// Whether a symbolic link in the path is an error.
        linkless: bool,
        /// A copy of the tree that the parent makes ahead, as only it may.
        copy: Option<TreeCopy>,
    },
}

/// The part that requires privileges on the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeCopy {
    /// The mount shows other owners than its file system has.
    IdMapped(IdMappedMount),
    /// The container's root may be unable to reach the path: used if the kernel reports that.
    Spare {
        /// `MS_*`, what every mount of the host is made in the container.
        propagation: u64,
        /// The detached copy; -1 where there is none.
        tree: Fd,
    },
    /// Mounts that the container makes there show on the host, as the host's show there: both roots and the mount are
    /// shared (mount_namespaces(7)). The other copies are of a tree that is cut off from the host.
    Peer {
        /// The detached copy; -1 until it is made.
        tree: Fd,
    },
}

impl Mount {
    /// Mounts it.
    pub fn carry_out<K: Kernel>(&self, child: &mut Child<'_, K>) -> Result<(), Errno> {
        let kernel = child.kernel;
        if single_call::mount_in_own_dev(self, child)? {
            return Ok(());
        }
        let mount = match &self.source {
            Source::New { kind, parameters, .. } => {
                new_file_system(kernel, kind, parameters, self.attributes.set)?
            }
            Source::Bind { copy: Some(TreeCopy::IdMapped(mapped)), .. } => mapped.tree,
            Source::Bind { copy: Some(TreeCopy::Peer { tree }), .. } => *tree,
            Source::Bind { path, recursive, linkless, copy } => {
                match (host_tree(kernel, path, *recursive, *linkless), copy) {
                    (Err(Errno::ACCESS), Some(TreeCopy::Spare { tree: tree @ 0.., .. })) => *tree,
                    (tree, _) => tree?,
                }
            }
        };
        if let Some(below) = self.recursive_attributes {
            kernel.mount_setattr(mount, true, below)?;
        }
        if matches!(self.source, Source::Bind { .. }) && self.attributes != MountAttributes::default() {
            kernel.mount_setattr(mount, false, self.attributes)?;
        }
        let target = self.target.create_target(child, self.target_kind)?;
        if let Source::New { copy_up: true, .. } = self.source {
            copy_up::copy_directory(kernel, target, mount)?;
        }
        kernel.attach(mount, target)?;
        for change in &self.propagation {
            let attributes =
                MountAttributes { propagation: change.flag.into(), ..MountAttributes::default() };
            kernel.mount_setattr(mount, change.recursive == Recursive::Yes, attributes)?;
        }
        kernel.close(target);
        if !(matches!(self.source, Source::New { .. }) && child.remember_mount(&self.target.path, mount)) {
            kernel.close(mount);
        } else if self.target.path.as_c_str() == c"dev" && self.is_empty_tmpfs() {
            child.own_dev = Some(mount);
        }
        Ok(())
    }

    /// Whether it is a tmpfs with nothing of the image in it.
    fn is_empty_tmpfs(&self) -> bool {
        matches!(&self.source, Source::New { kind, copy_up: false, .. } if kind.as_c_str() == c"tmpfs")
    }
}

/// A detached copy of the tree at a path of the host.
fn host_tree<K: Kernel>(kernel: &K, path: &CStr, recursive: bool, linkless: bool) -> Result<Fd, Errno> {
    let resolve = if linkless { ResolveFlags::NO_SYMLINKS } else { ResolveFlags::empty() };
    let source = kernel.open(CWD, path, OFlags::PATH, Mode::empty(), resolve)?;
    let tree = kernel.clone_tree(source, c"", recursive)?;
    kernel.close(source);
    Ok(tree)
}

fn new_file_system<K: Kernel>(
    kernel: &K,
    kind: &CStr,
    parameters: &[(CString, Option<CString>)],
    attributes: u64,
) -> Result<Fd, Errno> {
    let fs = kernel.fsopen(kind)?;
    for (key, value) in parameters {
        kernel.fsconfig(fs, key, value.as_deref())?;
    }
    let mount = kernel.fsmount(fs, attributes)?;
    kernel.close(fs);
    Ok(mount)
}

impl fmt::Display for Mount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.target.path.to_string_lossy();
        let place = if place == "." { "" } else { &place };
        match &self.source {
            Source::New { kind, .. } => write!(f, "mount {} at `/{place}`", kind.to_string_lossy())?,
            Source::Bind { path, .. } => write!(f, "bind `{}` at `/{place}`", path.to_string_lossy())?,
        }
        let mut words = Vec::new();
        if let Source::Bind { recursive: true, .. } = self.source {
            words.push("with all below it".to_owned());
        }
        for (bit, word) in ATTRIBUTES {
            if self.attributes.set & u64::from(bit) != 0 {
                words.push(word.to_owned());
            }
            if self.recursive_attributes.is_some_and(|below| below.set & u64::from(bit) != 0) {
                words.push(format!("all below {word}"));
            }
        }
        if let Source::Bind { copy: Some(TreeCopy::IdMapped(id_mapped)), .. } = &self.source {
            words.push(id_mapped.to_string());
        }
        if let Source::Bind { copy: Some(TreeCopy::Peer { .. }), .. } = &self.source {
            words.push("with mounts that show on the host".to_owned());
        }
        if let Source::New { parameters, .. } = &self.source {
            words.extend(parameters.iter().map(|(key, value)| {
                let key = key.to_string_lossy();
                value
                    .as_ref()
                    .map_or_else(|| key.to_string(), |value| format!("{key}={}", value.to_string_lossy()))
            }));
        }
        words.extend(self.propagation.iter().map(|change| propagation_name(change.flag.into()).to_owned()));
        if words.is_empty() { Ok(()) } else { write!(f, " ({})", words.join(", ")) }
    }
}

const ATTRIBUTES: [(u32, &str); 4] = [
    (MOUNT_ATTR_RDONLY, "read-only"),
    (MOUNT_ATTR_NOSUID, "nosuid"),
    (MOUNT_ATTR_NODEV, "nodev"),
    (MOUNT_ATTR_NOEXEC, "noexec"),
];

/// The word for `MS_*` propagation bits.
pub fn propagation_name(propagation: u64) -> &'static str {
    match u32::try_from(propagation).unwrap_or_default() {
        MS_PRIVATE => "private",
        MS_SLAVE => "slave",
        MS_SHARED => "shared",
        MS_UNBINDABLE => "unbindable",
        _ => "as it is",
    }
}

/// Makes one mount read-only; mounts below it keep their attributes.
pub(crate) fn make_mount_read_only<K: Kernel>(
    child: &mut Child<'_, K>,
    place: &ContainerPath,
) -> Result<(), Errno> {
    let attributes = MountAttributes { set: MOUNT_ATTR_RDONLY.into(), ..MountAttributes::default() };
    let mount = place.open(child)?;
    child.kernel.mount_setattr(mount, false, attributes)?;
    child.kernel.close(mount);
    Ok(())
}

/// Makes the root itself read-only, and those of its directories; what else is mounted below keeps its own attributes.
pub(crate) fn make_root_read_only<K: Kernel>(
    child: &mut Child<'_, K>,
    directories: &[ContainerPath],
) -> Result<(), Errno> {
    let attributes = MountAttributes { set: MOUNT_ATTR_RDONLY.into(), ..MountAttributes::default() };
    for directory in directories {
        let directory = directory.open(child)?;
        child.kernel.mount_setattr(directory, false, attributes)?;
        child.kernel.close(directory);
    }
    child.kernel.mount_setattr(child.root, false, attributes)
}
