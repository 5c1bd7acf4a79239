//! Covers a container's /proc/driver/nvidia by a copy that describes only the container's own cards.
//!
//! The driver's libraries read `params` to learn whether they may make device nodes, `gpus` and `capabilities` to learn
//! what there is. In the copy they may not, and it has the cards whose nodes the container has (libnvidia-container,
//! `src/nvc_mount.c`). A copy, and no binds: each file is a few lines that stay as they are while a task runs.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, fsconfig_create, fsconfig_set_string, fsmount,
    fsopen, move_mount,
};

use super::links::list_names;
use jobc_sys::error::{Error, Result};
use jobc_sys::open_inside::open_inside;

/// The largest file that is copied; they have a few hundred bytes.
const MAX_FILE_SIZE: u64 = 64 << 10;

/// How deep directories are copied: `capabilities/gpu0/mig/gi1/ci0`.
const MAX_DEPTH: usize = 6;

/// Covers the directory where the container has it; `source` is the host's.
pub(super) fn cover(root: &OwnedFd, source: &Path) -> Result<()> {
    let target = match open_inside(root, c"proc/driver/nvidia", OFlags::PATH | OFlags::DIRECTORY) {
        Ok(target) => target,
        // A container without /proc, or a host without the driver.
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
        Err(errno) => return Err(Error::system("open `/proc/driver/nvidia` in the container", errno)),
    };
    let machine = |errno| Error::system("cover `/proc/driver/nvidia` in the container", errno);
    let minors = minors(root);
    let files = new_tmpfs().map_err(machine)?;
    copy(source, files.as_fd(), Path::new(""), &VisibleCards::of(source, &minors), 0).map_err(machine)?;
    let read_only = MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    remount(&files, read_only).map_err(machine)?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(&files, "", &target, "", flags).map_err(machine)
}

/// A new file system that is mounted nowhere.
fn new_tmpfs() -> rustix::io::Result<OwnedFd> {
    let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(context.as_fd(), "mode", "0555")?;
    fsconfig_set_string(context.as_fd(), "size", "4m")?;
    fsconfig_create(context.as_fd())?;
    fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
}

fn remount(mount: &OwnedFd, attributes: MountAttrFlags) -> rustix::io::Result<()> {
    use jobc_sys::syscall::linux::Linux;
    use jobc_sys::syscall::{Kernel as _, MountAttributes};
    let set = MountAttributes { set: attributes.bits().into(), ..MountAttributes::default() };
    Linux.mount_setattr(std::os::fd::AsRawFd::as_raw_fd(mount), false, set)
}

/// The numbers of the nodes that the container has.
fn minors(root: &OwnedFd) -> Vec<u32> {
    let names = list_names(root, Path::new("dev"));
    names.iter().filter_map(|name| name.strip_prefix("nvidia")?.parse().ok()).collect()
}

/// The container's cards among the host's.
struct VisibleCards {
    /// Names in `gpus`.
    cards: Vec<String>,
    /// Names in `capabilities`.
    capabilities: Vec<String>,
}

impl VisibleCards {
    fn of(source: &Path, minors: &[u32]) -> Self {
        let is_chosen = |card: &String| {
            let path = source.join("gpus").join(card).join("information");
            let text = std::fs::read_to_string(path).unwrap_or_default();
            let minor = text.lines().find_map(|line| line.strip_prefix("Device Minor:"));
            minor.and_then(|minor| minor.trim().parse().ok()).is_some_and(|minor| minors.contains(&minor))
        };
        Self {
            cards: directory(&source.join("gpus")).into_iter().filter(is_chosen).collect(),
            capabilities: minors.iter().map(|minor| format!("gpu{minor}")).collect(),
        }
    }

    /// Whether an entry is copied, by its path below the directory.
    fn has(&self, path: &Path) -> bool {
        let mut names = path.iter().filter_map(|name| name.to_str());
        match (names.next(), names.next()) {
            (Some("gpus"), Some(card)) => self.cards.iter().any(|there| there == card),
            (Some("capabilities"), Some(name)) if name.starts_with("gpu") => {
                self.capabilities.iter().any(|there| there == name)
            }
            _ => true,
        }
    }
}

fn directory(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Copies what is chosen of the host's directory at `path` into one of the copy.
fn copy(
    source: &Path,
    into: BorrowedFd<'_>,
    path: &Path,
    chosen: &VisibleCards,
    depth: usize,
) -> rustix::io::Result<()> {
    for name in directory(&source.join(path)) {
        let path = path.join(&name);
        let Ok(data) = std::fs::symlink_metadata(source.join(&path)) else { continue };
        if !chosen.has(&path) {
            continue;
        }
        if data.is_dir() && depth < MAX_DEPTH {
            rustix::fs::mkdirat(into, &name, Mode::from_raw_mode(0o555))?;
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let below = rustix::fs::openat(into, &name, flags, Mode::empty())?;
            copy(source, below.as_fd(), &path, chosen, depth + 1)?;
        } else if data.is_file()
            && let Some(mut text) = text(&source.join(&path))
        {
            if name == "params" {
                text = without_device_files(&text);
            }
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let file = rustix::fs::openat(into, &name, flags, Mode::from_raw_mode(0o444))?;
            std::io::Write::write_all(&mut std::fs::File::from(file), text.as_bytes())
                .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        }
    }
    Ok(())
}

/// A file's text; `None` for one that cannot be read, such as a write-only file.
fn text(path: &Path) -> Option<String> {
    use std::io::Read as _;
    let mut text = String::new();
    std::fs::File::open(path).ok()?.take(MAX_FILE_SIZE).read_to_string(&mut text).ok()?;
    Some(text)
}

/// The driver's parameters with `ModifyDeviceFiles: 0`: libraries do not try to make nodes then.
fn without_device_files(params: &str) -> String {
    let mut lines: Vec<&str> =
        params.lines().filter(|line| !line.starts_with("ModifyDeviceFiles:")).collect();
    lines.push("ModifyDeviceFiles: 0");
    lines.join("\n") + "\n"
}
