//! The container's root file system: how it is put in place, pivot_root, masked and read-only paths.

use std::ffi::{CStr, CString};

use linux_raw_sys::general::{MOUNT_ATTR_NODEV, MOUNT_ATTR_NOEXEC, MOUNT_ATTR_NOSUID, MOUNT_ATTR_RDONLY};
use rustix::fs::{Mode, ResolveFlags};
use rustix::io::Errno;

use crate::child::Child;
use crate::child::path::{ContainerPath, DIRECTORY_FLAGS};
use jobc_sys::syscall::{CWD, Fd, Kernel, MountAttributes, NewMount};

/// The container's root, put in place in the new mount namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnterRoot {
    /// A directory, bind-mounted onto itself.
    Directory {
        /// An absolute path of the host.
        path: CString,
    },
    /// The root that the process already has: that of a container it has joined.
    Current,
    /// An overlay over a directory. Its upper layer is a private tmpfs, removed with the container.
    Overlay {
        /// The lower layer, an absolute path of the host.
        lower: CString,
        /// An empty directory of the host to mount upon, in the new mount namespace only.
        on: CString,
        /// The tmpfs's `size` in bytes.
        size: Option<CString>,
    },
    /// An overlay over several layers, or one whose upper layer is a directory of the host.
    Layers {
        /// An empty directory of the host to mount upon, in the new mount namespace only.
        on: CString,
        /// The `size` in bytes of the tmpfs that has the links, and the upper layer where none of them is named
        /// `upper`.
        size: Option<CString>,
        /// Links of the tmpfs to the layers: absolute paths of the host, and their names, by which `options` calls
        /// them.
        links: Vec<(CString, CString)>,
        /// The overlay's options, with commas.
        options: CString,
    },
    /// A private tmpfs with directories and links, on which later steps mount overlays whose layers are here.
    ///
    /// The tmpfs is the working directory meanwhile, so that those mounts can name the layers by short paths.
    Parts {
        /// An empty directory of the host to mount upon, in the new mount namespace only.
        on: CString,
        /// The tmpfs's `size` in bytes.
        size: Option<CString>,
        /// Directories of the tmpfs with their modes, outer ones first: `root` and everything below it, and the layers.
        directories: Vec<(CString, Mode)>,
        /// Links of the tmpfs: their targets and their paths.
        links: Vec<(CString, CString)>,
    },
}

impl EnterRoot {
    /// Mounts the root and remembers its file descriptor.
    pub fn carry_out<K: Kernel>(&self, child: &mut Child<'_, K>) -> Result<(), Errno> {
        let kernel = child.kernel;
        child.root = match self {
            Self::Directory { path } => {
                let directory =
                    kernel.open(CWD, path, DIRECTORY_FLAGS, Mode::empty(), ResolveFlags::empty())?;
                let tree = kernel.clone_tree(directory, c"", true)?;
                kernel.attach(tree, directory)?;
                kernel.close(directory);
                tree
            }
            Self::Current => kernel.open(CWD, c"/", DIRECTORY_FLAGS, Mode::empty(), ResolveFlags::empty())?,
            Self::Overlay { lower, on, size } => {
                let layers = mount_layers_tmpfs(child, on, size.as_deref())?;
                for name in [c"upper", c"work", c"root"] {
                    kernel.mkdir(layers, name, Mode::from_raw_mode(0o755))?;
                }
                let overlay = kernel.fsopen(c"overlay")?;
                kernel.fsconfig(overlay, c"lowerdir", Some(lower))?;
                kernel.fsconfig(overlay, c"upperdir", Some(c"upper"))?;
                kernel.fsconfig(overlay, c"workdir", Some(c"work"))?;
                if child.in_user_namespace {
                    kernel.fsconfig(overlay, c"userxattr", None)?;
                }
                let root = kernel.fsmount(overlay, 0)?;
                kernel.close(overlay);
                let at = kernel.open(
                    layers,
                    c"root",
                    DIRECTORY_FLAGS,
                    Mode::empty(),
                    ResolveFlags::NO_SYMLINKS,
                )?;
                kernel.attach(root, at)?;
                root
            }
            Self::Layers { on, size, links, options } => {
                let layers = mount_layers_tmpfs(child, on, size.as_deref())?;
                for (target, name) in links {
                    kernel.symlink(target, layers, name)?;
                }
                if !links.iter().any(|(_, name)| name.as_c_str() == c"upper") {
                    kernel.mkdir(layers, c"upper", Mode::from_raw_mode(0o755))?;
                    kernel.mkdir(layers, c"work", Mode::from_raw_mode(0o755))?;
                }
                kernel.mkdir(layers, c"root", Mode::from_raw_mode(0o755))?;
                // By name, in a private tmpfs: fsconfig(2) would take no list of more than 255
                // bytes.
                kernel.mount_here(&NewMount {
                    source: c"overlay",
                    name: c"root",
                    kind: c"overlay",
                    flags: 0,
                    data: options,
                })?;
                kernel.open(layers, c"root", DIRECTORY_FLAGS, Mode::empty(), ResolveFlags::NO_SYMLINKS)?
            }
            Self::Parts { on, size, directories, links } => {
                let layers = mount_layers_tmpfs(child, on, size.as_deref())?;
                for (path, mode) in directories {
                    kernel.mkdir(layers, path, *mode)?;
                }
                for (target, path) in links {
                    kernel.symlink(target, layers, path)?;
                }
                let directory = kernel.open(
                    layers,
                    c"root",
                    DIRECTORY_FLAGS,
                    Mode::empty(),
                    ResolveFlags::NO_SYMLINKS,
                )?;
                let root = kernel.clone_tree(directory, c"", false)?;
                kernel.attach(root, directory)?;
                kernel.close(directory);
                root
            }
        };
        Ok(())
    }
}

/// A tmpfs for layers, mounted upon a directory and made the working directory.
///
/// An overlay reads its layers by path: relative ones from there are short (fsconfig(2) takes 255 bytes).
fn mount_layers_tmpfs<K: Kernel>(
    child: &mut Child<'_, K>,
    on: &CStr,
    size: Option<&CStr>,
) -> Result<Fd, Errno> {
    let kernel = child.kernel;
    let on = kernel.open(CWD, on, DIRECTORY_FLAGS, Mode::empty(), ResolveFlags::empty())?;
    let tmpfs = kernel.fsopen(c"tmpfs")?;
    kernel.fsconfig(tmpfs, c"mode", Some(c"0755"))?;
    if let Some(size) = size {
        kernel.fsconfig(tmpfs, c"size", Some(size))?;
    }
    let layers = kernel.fsmount(tmpfs, u64::from(MOUNT_ATTR_NODEV))?;
    kernel.close(tmpfs);
    kernel.attach(layers, on)?;
    kernel.close(on);
    child.change_directory(layers)?;
    Ok(layers)
}

/// Sends the tmpfs with the layers, which is the working directory once the root is in place.
pub fn send_layers<K: Kernel>(kernel: &K, socket: Fd) -> Result<(), Errno> {
    let layers = kernel.open(CWD, c".", DIRECTORY_FLAGS, Mode::empty(), ResolveFlags::empty())?;
    kernel.send_descriptor(socket, b"layers", layers)?;
    kernel.close(layers);
    kernel.close(socket);
    Ok(())
}

/// Makes the new root `/` and lets go of the host's files (pivot_root(2), its section about `.`). The working
/// directory is the new root before and after.
pub fn pivot<K: Kernel>(child: &mut Child<'_, K>) -> Result<(), Errno> {
    let kernel = child.kernel;
    child.change_directory(child.root)?;
    kernel.pivot_root()?;
    kernel.detach_here()?;
    child.at_root = true;
    Ok(())
}

/// Hides a path: an empty read-only directory over a directory, the null device over anything else.
///
/// A path that does not exist needs no hiding.
pub fn mask<K: Kernel>(place: &ContainerPath, child: &mut Child<'_, K>) -> Result<(), Errno> {
    let kernel = child.kernel;
    let Some(target) = none_if_missing(place.open(child))? else { return Ok(()) };
    if kernel.stat(target)?.is_directory() {
        // Kernels before 6.15 copy attached mounts only: the first cover is attached, the others are its copies.
        if let Some(empty) = child.empty_directory {
            mount_over(kernel, empty, target)?;
        } else {
            let empty = empty_directory(kernel)?;
            kernel.attach(empty, target)?;
            child.empty_directory = Some(empty);
        }
    } else {
        mount_over(kernel, child.null_device()?, target)?;
    }
    kernel.close(target);
    Ok(())
}

/// Makes a path read-only with everything mounted below it. A path that does not exist is skipped.
pub fn make_read_only<K: Kernel>(place: &ContainerPath, child: &mut Child<'_, K>) -> Result<(), Errno> {
    let kernel = child.kernel;
    let Some(target) = none_if_missing(place.open(child))? else { return Ok(()) };
    let tree = read_only_copy(child, target)?;
    kernel.attach(tree, target)?;
    kernel.close(tree);
    kernel.close(target);
    Ok(())
}

/// A detached, read-only copy of a mount and all below it.
fn read_only_copy<K: Kernel>(child: &mut Child<'_, K>, target: Fd) -> Result<Fd, Errno> {
    let read_only = MountAttributes { set: MOUNT_ATTR_RDONLY.into(), ..MountAttributes::default() };
    if !child.lacks_open_tree_attr {
        match child.kernel.clone_tree_changed(target, read_only) {
            // A seccomp filter of this process may return EPERM; if it is really not permitted, the two calls fail too.
            Err(Errno::NOSYS | Errno::PERM) => child.lacks_open_tree_attr = true,
            other => return other,
        }
    }
    let tree = child.kernel.clone_tree(target, c"", true)?;
    child.kernel.mount_setattr(tree, true, read_only)?;
    Ok(tree)
}

fn mount_over<K: Kernel>(kernel: &K, with: Fd, target: Fd) -> Result<(), Errno> {
    let copy = kernel.clone_tree(with, c"", false)?;
    kernel.attach(copy, target)?;
    kernel.close(copy);
    Ok(())
}

fn none_if_missing(opened: Result<Fd, Errno>) -> Result<Option<Fd>, Errno> {
    match opened {
        Ok(fd) => Ok(Some(fd)),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// A detached, empty, read-only tmpfs: what masked directories are covered with.
fn empty_directory<K: Kernel>(kernel: &K) -> Result<Fd, Errno> {
    let fs = kernel.fsopen(c"tmpfs")?;
    kernel.fsconfig(fs, c"mode", Some(c"0555"))?;
    kernel.fsconfig(fs, c"ro", None)?;
    let attributes = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
    let mount = kernel.fsmount(fs, attributes.into())?;
    kernel.close(fs);
    Ok(mount)
}
