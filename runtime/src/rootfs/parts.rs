//! The machine's files folder by folder, for a user namespace.
//!
//! There the kernel lays no overlay over a folder below which something is mounted: without its cover, what a mount
//! hides would show (mount_namespaces(7), "Restrictions on mount namespaces"). `/` always has such mounts; most of its
//! folders have none, so each of them gets an overlay of its own, and the root they stand in is a tmpfs.

use std::ffi::CString;

use linux_raw_sys::general::{MOUNT_ATTR_NODEV, MOUNT_ATTR_RDONLY};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::DIRECTORY;
use crate::operation::Child;
use crate::syscall::{CWD, Fd, Kernel, MountAttributes};

/// A root that is put together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// An empty folder of the machine to mount upon, in the new mount namespace only.
    pub on: CString,
    /// The `size` in bytes of the tmpfs with everything that is written.
    pub size: Option<CString>,
    /// What stands in the root.
    pub list: Vec<Part>,
}

/// A name in the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The name.
    pub name: CString,
    /// What it is.
    pub kind: PartKind,
}

/// What a name in the root is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// A symbolic link.
    Link {
        /// What it says.
        target: CString,
    },
    /// An empty folder.
    Empty {
        /// Its permission bits.
        mode: u32,
    },
    /// A folder of the machine under a writable layer.
    Overlay {
        /// Its permission bits.
        mode: u32,
        /// The folder.
        lower: CString,
        /// The writable layer's folder on the tmpfs.
        upper: CString,
        /// The folder that the overlay works in, on the tmpfs.
        work: CString,
    },
    /// A folder of the machine with all that is mounted below it, read-only.
    Bind {
        /// The folder.
        source: CString,
    },
}

impl Parts {
    /// Puts the root together and returns its descriptor.
    pub(super) fn carry_out<K: Kernel>(&self, child: &Child<'_, K>) -> Result<Fd, Errno> {
        let kernel = child.kernel;
        let layers = layers(kernel, &self.on, self.size.as_deref())?;
        // pivot_root(2) wants a mount for the new root, so the folder is bound onto itself.
        let folder = kernel.open(layers, c"root", DIRECTORY, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
        let root = kernel.clone_tree(folder, c"", false)?;
        kernel.attach(root, folder)?;
        kernel.close(folder);
        for part in &self.list {
            part.carry_out(kernel, layers, root)?;
        }
        Ok(root)
    }

    /// The folders that can be written to.
    pub fn writable(&self) -> impl Iterator<Item = &CString> {
        self.list.iter().filter(|part| matches!(part.kind, PartKind::Overlay { .. })).map(|part| &part.name)
    }
}

/// A tmpfs with folders for the layers of an overlay and for the root; the working directory is there afterwards.
pub(super) fn layers<K: Kernel>(
    kernel: &K,
    on: &std::ffi::CStr,
    size: Option<&std::ffi::CStr>,
) -> Result<Fd, Errno> {
    let on = kernel.open(CWD, on, DIRECTORY, Mode::empty(), ResolveFlags::empty())?;
    let tmpfs = kernel.fsopen(c"tmpfs")?;
    kernel.fsconfig(tmpfs, c"mode", Some(c"0755"))?;
    if let Some(size) = size {
        kernel.fsconfig(tmpfs, c"size", Some(size))?;
    }
    let layers = kernel.fsmount(tmpfs, u64::from(MOUNT_ATTR_NODEV))?;
    kernel.close(tmpfs);
    kernel.attach(layers, on)?;
    // An overlay reads its layers by path: relative ones from here keep them short (fsconfig(2) takes 255 bytes).
    kernel.fchdir(layers)?;
    for name in [c"upper", c"work", c"root"] {
        kernel.mkdir(layers, name, Mode::from_raw_mode(0o755))?;
    }
    Ok(layers)
}

impl Part {
    fn carry_out<K: Kernel>(&self, kernel: &K, layers: Fd, root: Fd) -> Result<(), Errno> {
        let name = &self.name;
        let mode = match &self.kind {
            PartKind::Link { target } => return kernel.symlink(target, root, name),
            PartKind::Empty { mode } | PartKind::Overlay { mode, .. } => *mode,
            PartKind::Bind { .. } => 0o755,
        };
        kernel.mkdir(root, name, Mode::from_raw_mode(mode))?;
        let mount = match &self.kind {
            PartKind::Overlay { lower, upper, work, mode } => {
                // What a merged folder's own attributes are is decided by its upper layer.
                kernel.mkdir(layers, upper, Mode::from_raw_mode(*mode))?;
                kernel.mkdir(layers, work, Mode::from_raw_mode(0o755))?;
                let overlay = kernel.fsopen(c"overlay")?;
                kernel.fsconfig(overlay, c"lowerdir", Some(lower))?;
                kernel.fsconfig(overlay, c"upperdir", Some(upper))?;
                kernel.fsconfig(overlay, c"workdir", Some(work))?;
                kernel.fsconfig(overlay, c"userxattr", None)?;
                let mount = kernel.fsmount(overlay, 0)?;
                kernel.close(overlay);
                mount
            }
            PartKind::Bind { source } => {
                let source = kernel.open(CWD, source, DIRECTORY, Mode::empty(), ResolveFlags::empty())?;
                let tree = kernel.clone_tree(source, c"", true)?;
                kernel.close(source);
                let read_only =
                    MountAttributes { set: MOUNT_ATTR_RDONLY.into(), ..MountAttributes::default() };
                kernel.mount_setattr(tree, true, read_only)?;
                tree
            }
            PartKind::Link { .. } | PartKind::Empty { .. } => return Ok(()),
        };
        let at = kernel.open(
            root,
            name,
            DIRECTORY | OFlags::NOFOLLOW,
            Mode::empty(),
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
        )?;
        kernel.attach(mount, at)?;
        kernel.close(at);
        kernel.close(mount);
        Ok(())
    }
}
