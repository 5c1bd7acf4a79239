//! This program's own file, and its environment, kept from the containers that it enters.
//!
//! When a process enters a pid namespace, other processes there see it before it has become the container's program.
//! They may not inspect it, but CAP_SYS_PTRACE, which some containers get to debug programs, overrides that, and
//! /proc/PID/exe then leads to this program's file (CVE-2019-5736). So this program first executes itself again from a
//! detached read-only mount, through which no process can write the file. The environment of the caller is dropped at
//! the same time, because /proc/PID/environ exposes it in the same way.
#![allow(unsafe_code)]

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use linux_raw_sys::general::{self, MOUNT_ATTR_RDONLY};
use rustix::fs::{CWD, Mode, OFlags, StatVfsMountFlags};

use crate::c_list::CList;
use crate::error::{Error, Result};
use crate::syscall::linux::Linux;
use crate::syscall::{Kernel as _, MountAttributes, of_fd, raw};

/// The environment with which the program executes itself again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Environment {
    /// All variables, since later code may read any of them.
    Whole,
    /// Variables that this program reads to find its directories, systemd and programs, and to write messages.
    Minimal,
}

/// The variables of [`Environment::Minimal`]; a trailing `_` marks a prefix.
const MINIMAL_VARIABLES: [&str; 16] = [
    "COLORTERM",
    "COLUMNS",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "DBUS_",
    "HOME",
    "JOBC_",
    "LANG",
    "LC_",
    "LISTEN_",
    "NOTIFY_SOCKET",
    "NO_COLOR",
    "PATH",
    "RUST_",
    "TERM",
    "XDG_",
];

impl Environment {
    fn includes(self, name: &OsStr) -> bool {
        let is = |needed: &&str| {
            let (name, needed) = (name.as_bytes(), needed.as_bytes());
            if needed.ends_with(b"_") { name.starts_with(needed) } else { name == needed }
        };
        self == Self::Whole || MINIMAL_VARIABLES.iter().any(is)
    }
}

/// Checks that this process executes from a read-only mount with no more than the given environment, and otherwise
/// executes itself again; returns only in the first case.
///
/// Only root of the host needs it: for root of another user namespace and its processes, this program's file belongs to
/// another user, or this user can change it anyway. Root without CAP_SYS_ADMIN cannot mount, and its containers are in
/// user namespaces below its own, without rights over this process.
pub fn ensure_read_only(environment: Environment) -> Result<()> {
    if crate::host::needs_user_namespace() || crate::host::in_user_namespace() {
        return Ok(());
    }
    let machine = |what: &'static str| move |errno| Error::system(what, errno);
    let own = rustix::fs::openat(CWD, c"/proc/self/exe", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        .map_err(machine("open this program's file"))?;
    let mounted = rustix::fs::fstatvfs(&own).map_err(machine("look at this program's file system"))?;
    let bare = std::env::vars_os().all(|(name, _)| environment.includes(&name));
    if bare && mounted.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return Ok(());
    }
    let own = std::os::fd::AsRawFd::as_raw_fd(&own);
    let tree = Linux.clone_tree(own, c"", false).map_err(machine("mount this program's file"))?;
    let read_only = MountAttributes { set: MOUNT_ATTR_RDONLY.into(), ..MountAttributes::default() };
    Linux.mount_setattr(tree, false, read_only).map_err(machine("make this program's file read-only"))?;
    let text = |bytes: Vec<u8>| CString::new(bytes).ok();
    let arguments = CList::new(std::env::args_os().filter_map(|word| text(word.into_vec())).collect());
    let variables = std::env::vars_os().filter(|(name, _)| environment.includes(name));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_is_taken_along() {
        for name in ["PATH", "XDG_RUNTIME_DIR", "LISTEN_FDS", "JOBC_LOG", "LC_ALL", "DBUS_SYSTEM_BUS_ADDRESS"]
        {
            assert!(Environment::Minimal.includes(OsStr::new(name)), "{name}");
        }
        for name in ["AWS_SECRET_ACCESS_KEY", "PATHS", "MY_HOME", "TERMINAL", "XDG", ""] {
            assert!(!Environment::Minimal.includes(OsStr::new(name)), "{name}");
            assert!(Environment::Whole.includes(OsStr::new(name)), "{name}");
        }
    }
}
