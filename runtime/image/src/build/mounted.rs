//! Layers seen as one tree: an overlay that stands in no folder and goes with its last descriptor.
//!
//! What copies files into an image, or looks into one, works on such a tree by descriptors. Nothing of it can be left behind:
//! the kernel takes the mount away when the process ends, however it does.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, UnmountFlags,
    fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen,
};

use jobc_sys::error::{Error, Kind, Result};

/// The tree of some layers, the lowest first, open. With `step`, a folder with the empty folders `upper` and `work`, it can be
/// written to.
///
/// The calling thread should be one that ends with its work: on kernels before 6.5 it gets mounts of its own.
pub(super) fn tree(lowers: &[PathBuf], step: Option<&Path>) -> Result<OwnedFd> {
    match (lowers, step) {
        ([], None) => Err(Error::new(Kind::State, "a tree of no layers")),
        ([only], None) => folder(only),
        ([], Some(step)) => folder(&step.join("upper")),
        _ => overlay(lowers, step),
    }
}

fn folder(path: &Path) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
        .map_err(|errno| Error::machine(format!("open `{}`", path.display()), errno))
}

fn overlay(lowers: &[PathBuf], step: Option<&Path>) -> Result<OwnedFd> {
    let failed = |errno| {
        Error::machine(format!("lay an overlay over {} layers", lowers.len()), errno).help(
            "the folder of images must be on a file system that takes an overlay's upper layer, such as ext4, xfs or btrfs; `--image-root` names another",
        )
    };
    // By descriptors: fsconfig(2) takes 255 bytes, and a path may be longer.
    let open: Vec<OwnedFd> = lowers.iter().rev().map(|path| folder(path)).collect::<Result<_>>()?;
    let of = |fd: &OwnedFd| format!("/proc/self/fd/{}", fd.as_raw_fd());
    let uppers = step.map(|step| Ok::<_, Error>((folder(&step.join("upper"))?, folder(&step.join("work"))?)));
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
        for (key, value) in settings() {
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
        Err(Errno::INVAL) => attached(&lowers, &options).map_err(failed),
        other => other.map_err(failed),
    }
}

/// What keeps the upper layer one that can become a layer of an image: no redirects, no files without their content.
fn settings() -> &'static [(&'static str, Option<&'static str>)] {
    if jobc_sys::machine::in_user_namespace() {
        // Implies the other two (overlayfs.rst, "User xattr").
        &[("userxattr", None)]
    } else {
        &[("redirect_dir", Some("off")), ("metacopy", Some("off")), ("index", Some("off"))]
    }
}

/// The same by mount(2), whose options may fill a page: upon a folder that only this thread sees so, and let go at once.
fn attached(lowers: &[String], options: &[(&str, String)]) -> rustix::io::Result<OwnedFd> {
    let mut words = vec![format!("lowerdir={}", lowers.join(":"))];
    words.extend(options.iter().map(|(key, value)| format!("{key}={value}")));
    words.extend(settings().iter().map(|(key, value)| match value {
        Some(value) => format!("{key}={value}"),
        None => (*key).to_owned(),
    }));
    let words = std::ffi::CString::new(words.join(",")).map_err(|_| Errno::INVAL)?;
    own_mounts()?;
    rustix::mount::mount("overlay", "/proc", "overlay", MountFlags::NODEV, words.as_c_str())?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let tree = rustix::fs::openat(CWD, "/proc", flags, Mode::empty());
    rustix::mount::unmount("/proc", UnmountFlags::DETACH)?;
    tree
}

/// Gives this thread mounts of its own, which nobody else is told of.
fn own_mounts() -> rustix::io::Result<()> {
    use jobc_sys::syscall::Kernel as _;
    jobc_sys::syscall::linux::Linux.unshare(jobc_container::namespaces::Namespace::Mount.flag())?;
    rustix::mount::mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
}

/// A file below /proc of an open descriptor, to open it anew or to name it in a call that takes a path.
pub(super) fn path_of(file: &impl std::os::fd::AsRawFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}
