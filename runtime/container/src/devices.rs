//! Device nodes under /dev.
//!
//! /dev is always a fresh tmpfs, so the image contains no nodes. Root creates them; in a user namespace, where the
//! kernel does not allow that, the host's nodes are bind-mounted, each checked to be the requested device.

use std::ffi::{CStr, CString};
use std::fmt;

use linux_raw_sys::general::{MOUNT_ATTR_NOEXEC, MOUNT_ATTR_NOSUID};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::child::path::{ContainerPath, TargetKind};
use crate::child::{Child, NullDevice};
use jobc_sys::syscall::{CWD, Kernel, MountAttributes};

/// A device node of the container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceNode {
    /// Its path.
    pub path: ContainerPath,
    /// The path of the same device on the host, if it must be bind-mounted.
    pub source: CString,
    /// The file type's bits and the permission bits.
    pub mode: u32,
    /// The device number, as makedev(3) packs it; 0 for a pipe.
    pub device: u64,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// The devices that every container has: name, major, minor; all of them mode 0666
/// (OCI runtime specification, Linux configuration, default devices).
pub const DEFAULT_DEVICES: [(&str, u32, u32); 6] =
    [("null", 1, 3), ("zero", 1, 5), ("full", 1, 7), ("random", 1, 8), ("urandom", 1, 9), ("tty", 5, 0)];

/// The links that every container has below /dev, and their targets.
pub const DEFAULT_LINKS: [(&CStr, &str); 5] = [
    (c"/proc/self/fd", "fd"),
    (c"/proc/self/fd/0", "stdin"),
    (c"/proc/self/fd/1", "stdout"),
    (c"/proc/self/fd/2", "stderr"),
    (c"pts/ptmx", "ptmx"),
];

const TYPE_MASK: u32 = 0o170_000;
const TYPE_CHARACTER_DEVICE: u32 = 0o020_000;

impl DeviceNode {
    /// Makes the node, or binds the host's.
    pub fn carry_out<K: Kernel>(&self, child: &mut Child<'_, K>) -> Result<(), Errno> {
        if child.in_user_namespace { self.bind(child) } else { self.create(child) }
    }

    fn create<K: Kernel>(&self, child: &mut Child<'_, K>) -> Result<(), Errno> {
        let kernel = child.kernel;
        let (directory, name) = child.parent(&self.path)?;
        let made = kernel.mknod(directory, name, self.mode, self.device);
        if made == Err(Errno::EXIST) {
            // A mount of config.json provides the same device.
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            let there =
                kernel.open(directory, name, OFlags::PATH | OFlags::NOFOLLOW, Mode::empty(), resolve)?;
            let status = kernel.stat(there)?;
            kernel.close(there);
            if status.mode & TYPE_MASK != self.mode & TYPE_MASK || status.device != self.device {
                return Err(Errno::EXIST);
            }
        } else {
            made?;
            let null = (TYPE_CHARACTER_DEVICE, rustix::fs::makedev(1, 3));
            if child.own_dev == Some(directory)
                && name == c"null"
                && (self.mode & TYPE_MASK, self.device) == null
            {
                child.null = NullDevice::Created;
            }
            if (self.uid, self.gid) != (0, 0) {
                kernel.chown(directory, name, self.uid, self.gid)?;
            }
        }
        Ok(())
    }

    fn bind<K: Kernel>(&self, child: &mut Child<'_, K>) -> Result<(), Errno> {
        let kernel = child.kernel;
        let source =
            kernel.open(CWD, &self.source, OFlags::PATH, Mode::empty(), ResolveFlags::NO_MAGICLINKS)?;
        let status = kernel.stat(source)?;
        if status.mode & TYPE_MASK != self.mode & TYPE_MASK || status.device != self.device {
            return Err(Errno::NXIO);
        }
        let tree = kernel.clone_tree(source, c"", false)?;
        kernel.close(source);
        let attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;
        kernel.mount_setattr(
            tree,
            false,
            MountAttributes { set: attributes.into(), ..MountAttributes::default() },
        )?;
        let target = self.path.create(child, TargetKind::File)?;
        kernel.attach(tree, target)?;
        kernel.close(target);
        kernel.close(tree);
        Ok(())
    }
}

impl fmt::Display for DeviceNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.mode & TYPE_MASK {
            TYPE_CHARACTER_DEVICE => "character device",
            0o060_000 => "block device",
            _ => "pipe",
        };
        let (major, minor) = (rustix::fs::major(self.device), rustix::fs::minor(self.device));
        write!(f, "make `/{}`: {kind}", self.path.path.to_string_lossy())?;
        if self.device != 0 {
            write!(f, " {major}:{minor}")?;
        }
        write!(f, ", mode {:04o}", self.mode & 0o7777)
    }
}

/// Makes a symbolic link; an existing one, from the image's own /dev, is kept.
pub(crate) fn link<K: Kernel>(
    target: &CStr,
    place: &ContainerPath,
    child: &mut Child<'_, K>,
) -> Result<(), Errno> {
    let kernel = child.kernel;
    let (directory, name) = child.parent(place)?;
    let made = kernel.symlink(target, directory, name);
    if made == Err(Errno::EXIST) { Ok(()) } else { made }
}
