//! Layers as one tree: an overlay that is mounted on no directory and is unmounted with its last file descriptor.
//!
//! Code that copies files into an image, or reads one, uses such a tree through file descriptors. Nothing of it can be
//! left behind: the kernel removes the mount when the process exits, however it does.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, UnmountFlags,
    fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen,
};

use jobc_sys::error::{Error, Kind, Result};

/// The tree of some layers, the lowest first, open. With `step`, a directory with the empty directories `upper` and
/// `work`, it can be written to.
///
/// The calling thread should exit after its work: on kernels before 6.5 it gets its own mount namespace.
pub(super) fn mount_layers(lowers: &[PathBuf], step: Option<&Path>) -> Result<OwnedFd> {
    match (lowers, step) {
        ([], None) => Err(Error::new(Kind::State, "no layers to mount")),
        ([only], None) => directory(only),
        ([], Some(step)) => directory(&step.join("upper")),
        _ => overlay(lowers, step),
    }
}

fn directory(path: &Path) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
        .map_err(|errno| Error::system(format!("open `{}`", path.display()), errno))
}

fn overlay(lowers: &[PathBuf], step: Option<&Path>) -> Result<OwnedFd> {
    let failed = |errno| {
        Error::system(format!("mount an overlay of {} layers", lowers.len()), errno).help(
            "the image directory must be on a file system that supports an overlay upper layer, such as ext4, xfs or btrfs; choose another with `--image-root`",
        )
    };
    // By file descriptors: fsconfig(2) takes 255 bytes, and a path may be longer.
    let open: Vec<OwnedFd> = lowers.iter().rev().map(|path| directory(path)).collect::<Result<_>>()?;
    let of = |fd: &OwnedFd| format!("/proc/self/fd/{}", fd.as_raw_fd());
    let uppers =
        step.map(|step| Ok::<_, Error>((directory(&step.join("upper"))?, directory(&step.join("work"))?)));
    let uppers = uppers.transpose()?;
    let mut options: Vec<(&str, String)> = Vec::new();
    if let Some((upper, work)) = &uppers {
        options.extend([("upperdir", of(upper)), ("workdir", of(work))]);
    }
    let lowers: Vec<String> = open.iter().map(of).collect();
    let new = || {
        let overlay = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
        for lower in &lowers {
            fsconfig_set_string(&overlay, "lowerdir+", lower)?;
        }
        for (key, value) in &options {
            fsconfig_set_string(&overlay, *key, value)?;
        }
        for (key, value) in overlay_options() {
            match value {
                Some(value) => fsconfig_set_string(&overlay, *key, *value)?,
                None => fsconfig_set_flag(&overlay, *key)?,
            }
        }
        fsconfig_create(&overlay)?;
        fsmount(&overlay, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_NODEV)
    };
    match new() {
        // `lowerdir+` is new in 6.5 (Documentation/filesystems/overlayfs.rst).
        Err(Errno::INVAL) => mount_by_path(&lowers, &options).map_err(failed),
        other => other.map_err(failed),
    }
}

/// Options that keep the upper layer usable as a layer of an image: no redirects, no files without their content.
fn overlay_options() -> &'static [(&'static str, Option<&'static str>)] {
    if jobc_sys::host::in_user_namespace() {
        // Implies the other two (overlayfs.rst, "User xattr").
        &[("userxattr", None)]
    } else {
        &[("redirect_dir", Some("off")), ("metacopy", Some("off")), ("index", Some("off"))]
    }
}

/// The same by mount(2), whose options may fill a page: on a directory in this thread's mount namespace, and detached
/// at once.
fn mount_by_path(lowers: &[String], options: &[(&str, String)]) -> rustix::io::Result<OwnedFd> {
    let mut words = vec![format!("lowerdir={}", lowers.join(":"))];
    words.extend(options.iter().map(|(key, value)| format!("{key}={value}")));
    words.extend(overlay_options().iter().map(|(key, value)| match value {
        Some(value) => format!("{key}={value}"),
        None => (*key).to_owned(),
    }));
    let words = std::ffi::CString::new(words.join(",")).map_err(|_| Errno::INVAL)?;
    unshare_mounts()?;
    rustix::mount::mount("overlay", "/proc", "overlay", MountFlags::NODEV, words.as_c_str())?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let tree = rustix::fs::openat(CWD, "/proc", flags, Mode::empty());
    rustix::mount::unmount("/proc", UnmountFlags::DETACH)?;
    tree
}

/// Gives this thread its own mount namespace, whose mounts do not propagate.
fn unshare_mounts() -> rustix::io::Result<()> {
    use jobc_sys::syscall::Kernel as _;
    jobc_sys::syscall::linux::Linux.unshare(jobc_container::namespaces::Namespace::Mount.flag())?;
    rustix::mount::mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
}

/// A file below /proc of an open file descriptor, to open it again or to pass it to a call that takes a path.
pub(super) fn path_of(file: &impl std::os::fd::AsRawFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}
