//! A process that gives up the network and all writing, for programs that only compute.

use std::io::Write as _;
use std::path::Path;

use linux_raw_sys::general::{
    CLONE_NEWIPC, CLONE_NEWNET, CLONE_NEWNS, CLONE_NEWUSER, MOUNT_ATTR_NOSUID, MOUNT_ATTR_RDONLY, MS_NODEV,
    MS_NOSUID, MS_PRIVATE, RLIMIT_CORE, RLIMIT_CPU, RLIMIT_FSIZE,
};
use rustix::fs::{CWD, Mode, OFlags};

use crate::error::{Error, Kind, Result};
use crate::syscall::linux::Linux;
use crate::syscall::{Kernel as _, MountAttributes, NewMount, Prctl};

/// The resources that a confined process may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// CPU time in seconds.
    pub cpu_seconds: u64,
    /// The size of a file that it writes, and of all files in its /dev/shm, in bytes.
    pub file_bytes: u64,
}

/// Confines this process, which must have one thread, and everything it starts: only an unconnected network, no
/// writable file system but an empty /dev/shm in memory, no new privileges; it ends with its parent.
///
/// # Errors
///
/// The host allows no user namespaces, or is older than Linux 5.12.
pub fn confine(limits: Limits) -> Result<()> {
    let failed = |what: &'static str| {
        move |errno| Error::system(what, errno).help("`jobc doctor` shows what this host allows")
    };
    let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    Linux.prctl(Prctl::EndWithParent(true)).map_err(failed("end with its parent"))?;
    Linux
        .unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC)
        .map_err(failed("create a user namespace"))?;
    for (file, text) in [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{user} {user} 1")),
        ("gid_map", format!("{group} {group} 1")),
    ] {
        write(&Path::new("/proc/self").join(file), &text)?;
    }
    Linux.set_propagation(MS_PRIVATE.into()).map_err(failed("separate its mounts"))?;
    let here = rustix::process::getcwd(Vec::new())
        .map_err(|error| Error::system("find the working directory", error))?;
    let root =
        rustix::fs::openat(CWD, c"/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .map_err(failed("open `/`"))?;
    let root = std::os::fd::AsRawFd::as_raw_fd(&root);
    let read_only =
        MountAttributes { set: (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID).into(), ..MountAttributes::default() };
    Linux.mount_setattr(root, true, read_only).map_err(failed("make its file systems read-only"))?;
    Linux.chdir(c"/dev").map_err(failed("enter `/dev`"))?;
    let size = std::ffi::CString::new(format!("size={},mode=1777", limits.file_bytes)).unwrap_or_default();
    let memory =
        NewMount { source: c"tmpfs", name: c"shm", kind: c"tmpfs", flags: MS_NOSUID | MS_NODEV, data: &size };
    Linux.mount_here(&memory).map_err(failed("mount an empty /dev/shm"))?;
    Linux.chdir(&here).map_err(failed("return to the working directory"))?;
    for (resource, limit) in
        [(RLIMIT_CPU, limits.cpu_seconds), (RLIMIT_FSIZE, limits.file_bytes), (RLIMIT_CORE, 0)]
    {
        Linux.setrlimit(resource, limit, limit).map_err(failed("set its limits"))?;
    }
    Linux.prctl(Prctl::NoNewPrivileges).map_err(failed("give up new privileges"))
}

/// Writes a file of /proc in one piece.
fn write(path: &Path, text: &str) -> Result<()> {
    let written = std::fs::OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| Error::new(Kind::System, format!("cannot write `{}`: {error}", path.display())))
}
