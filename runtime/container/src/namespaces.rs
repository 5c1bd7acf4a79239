//! Namespaces: which are new, which are joined.

use std::ffi::{CStr, CString};
use std::fmt;

use linux_raw_sys::general;
use oci_spec::runtime::LinuxNamespaceType;
use rustix::io::Errno;

use crate::child::Child;
use jobc_sys::syscall::{Fd, Kernel};

/// A kind of namespace (namespaces(7)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Namespace {
    /// User and group ids; first, since it owns the others.
    User,
    /// Process ids.
    Pid,
    /// Network.
    Network,
    /// System V IPC and POSIX message queues.
    Ipc,
    /// Host name.
    Uts,
    /// The root of the cgroups.
    Cgroup,
    /// Clocks.
    Time,
    /// Mounts.
    Mount,
}

impl Namespace {
    /// Every kind, in the order they are joined.
    pub const ALL: [Self; 8] =
        [Self::User, Self::Pid, Self::Network, Self::Ipc, Self::Uts, Self::Cgroup, Self::Time, Self::Mount];

    /// The kind that config.json names.
    pub fn of(kind: LinuxNamespaceType) -> Self {
        match kind {
            LinuxNamespaceType::User => Self::User,
            LinuxNamespaceType::Pid => Self::Pid,
            LinuxNamespaceType::Network => Self::Network,
            LinuxNamespaceType::Ipc => Self::Ipc,
            LinuxNamespaceType::Uts => Self::Uts,
            LinuxNamespaceType::Cgroup => Self::Cgroup,
            LinuxNamespaceType::Time => Self::Time,
            LinuxNamespaceType::Mount => Self::Mount,
        }
    }

    /// Its `CLONE_NEW*` bit.
    pub fn flag(self) -> u32 {
        match self {
            Self::User => general::CLONE_NEWUSER,
            Self::Pid => general::CLONE_NEWPID,
            Self::Network => general::CLONE_NEWNET,
            Self::Ipc => general::CLONE_NEWIPC,
            Self::Uts => general::CLONE_NEWUTS,
            Self::Cgroup => general::CLONE_NEWCGROUP,
            Self::Time => general::CLONE_NEWTIME,
            Self::Mount => general::CLONE_NEWNS,
        }
    }

    /// Its file's name below /proc/PID/ns.
    pub fn file(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Pid => "pid",
            Self::Network => "net",
            Self::Ipc => "ipc",
            Self::Uts => "uts",
            Self::Cgroup => "cgroup",
            Self::Time => "time",
            Self::Mount => "mnt",
        }
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Network => "network",
            Self::Mount => "mount",
            other => other.file(),
        })
    }
}

/// The names of `CLONE_NEW*` bits, with commas; `none` for none.
pub fn flag_names(flags: u32) -> String {
    let names: Vec<String> =
        Namespace::ALL.iter().filter(|kind| flags & kind.flag() != 0).map(ToString::to_string).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// An existing namespace to enter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinNamespace {
    /// Its type.
    pub kind: Namespace,
    /// The namespace, open.
    pub fd: Fd,
    /// The path that was opened, for messages.
    pub path: String,
}

impl fmt::Display for JoinNamespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "join the {} namespace {}", self.kind, self.path)
    }
}

/// The map that a process writes for itself: one user and one group (user_namespaces(7)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdMapFiles {
    /// The line of /proc/self/uid_map.
    pub uid: CString,
    /// The line of /proc/self/gid_map.
    pub gid: CString,
    /// Whether setgroups(2) must be denied first, as the kernel requires of unprivileged processes.
    pub deny_setgroups: bool,
}

impl IdMapFiles {
    /// Writes the files.
    pub fn write<K: Kernel>(&self, child: &mut Child<'_, K>) -> Result<(), Errno> {
        if self.deny_setgroups {
            child.write_own(c"self/setgroups", b"deny")?;
        }
        child.write_own(c"self/uid_map", self.uid.as_bytes())?;
        child.write_own(c"self/gid_map", self.gid.as_bytes())
    }
}

impl fmt::Display for IdMapFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (uid, gid) = (self.uid.to_string_lossy(), self.gid.to_string_lossy());
        write!(f, "users by `{}` and groups by `{}`", uid.trim(), gid.trim())?;
        if self.deny_setgroups { f.write_str(", supplementary groups denied") } else { Ok(()) }
    }
}

/// Goes to the working directory and checks that it lies inside the root (CVE-2024-21626).
pub(crate) fn enter_directory<K: Kernel>(kernel: &K, path: &CStr) -> Result<(), Errno> {
    kernel.chdir(path)?;
    if kernel.working_directory_is_inside()? { Ok(()) } else { Err(Errno::XDEV) }
}
