//! This program's own file, kept from the containers that it enters.
//!
//! A process that enters a pid namespace in which others run is seen by them before it has become the container's
//! program. Nobody may look into it, but CAP_SYS_PTRACE, which some containers are given to debug programs, overrules
//! that, and /proc/PID/exe is then a way to this program's file (CVE-2019-5736). So this program first executes itself
//! again from a read-only mount that stands nowhere: through it the file cannot be written, whoever asks.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::os::unix::ffi::OsStringExt as _;

use linux_raw_sys::general::{self, MOUNT_ATTR_RDONLY};
use rustix::fs::{CWD, Mode, OFlags, StatVfsMountFlags};

use crate::c_list::CList;
use crate::error::{Error, Result};
use crate::syscall::linux::Linux;
use crate::syscall::{Kernel as _, MountAttributes, of_fd, raw};

/// Sees that this process executes from a file system that is mounted read-only, and executes itself again where it
/// does not; returns in the first case only.
///
/// Only root needs it: to the root of a user namespace that is not the machine's, and to its processes, this program's
/// file is somebody else's, or their own to change.
pub fn keep_read_only() -> Result<()> {
    if !rustix::process::geteuid().is_root() || crate::machine::in_user_namespace() {
        return Ok(());
    }
    let machine = |what: &'static str| move |errno| Error::machine(what, errno);
    let own = rustix::fs::openat(CWD, c"/proc/self/exe", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        .map_err(machine("open this program's file"))?;
    let mounted = rustix::fs::fstatvfs(&own).map_err(machine("look at this program's file system"))?;
    if mounted.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return Ok(());
    }
    let own = std::os::fd::AsRawFd::as_raw_fd(&own);
    let tree = Linux.clone_tree(own, c"", false).map_err(machine("mount this program's file"))?;
    let read_only = MountAttributes { set: MOUNT_ATTR_RDONLY.into(), ..MountAttributes::default() };
    Linux.mount_setattr(tree, false, read_only).map_err(machine("make this program's file read-only"))?;
    let text = |bytes: Vec<u8>| CString::new(bytes).ok();
    let arguments = CList::new(std::env::args_os().filter_map(|word| text(word.into_vec())).collect());
    let variables = std::env::vars_os();
    let variables =
        variables.filter_map(|(name, value)| text([name.into_vec(), value.into_vec()].join(&b'=')));
    let environment = CList::new(variables.collect());
    let call = [
        of_fd(tree),
        c"".as_ptr() as usize,
        arguments.address(),
        environment.address(),
        general::AT_EMPTY_PATH as usize,
        0,
    ];
    // SAFETY: both arrays end with a null pointer and outlive the call, which returns only where it fails.
    let failed = unsafe { raw::syscall(general::__NR_execveat, call) };
    failed.map(drop).map_err(machine("execute this program from a read-only mount"))
}
