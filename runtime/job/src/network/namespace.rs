//! Network and IPC namespaces, created and entered by threads: each thread of a process can be in a different one
//! (network_namespaces(7), setns(2)).

use std::os::fd::{AsRawFd as _, OwnedFd};

use rustix::fs::{Mode, OFlags};

use jobc_container::namespaces::Namespace;
use jobc_sys::error::{Error, Result};
use jobc_sys::syscall::Kernel as _;
use jobc_sys::syscall::linux::Linux;

/// Does some work in a separate thread, so that only that thread changes its namespaces.
pub(super) fn in_new_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let done = std::thread::scope(|scope| scope.spawn(work).join());
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Moves this thread to a new network namespace, and opens it.
///
/// It creates no IPv6 addresses: duplicate address detection would take a second each, and names resolve to IPv4.
pub(super) fn unshare() -> Result<OwnedFd> {
    const PATH: &str = "/proc/thread-self/ns/net";
    Linux
        .unshare(Namespace::Network.flag())
        .map_err(|errno| Error::system("create a network namespace", errno).help(HELP))?;
    // A kernel without IPv6 has no such file.
    let _ = std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
    rustix::fs::open(PATH, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| Error::system(format!("open `{PATH}`"), errno))
}

/// Moves this thread to a new IPC namespace, and opens it.
pub(super) fn unshare_ipc() -> Result<OwnedFd> {
    const PATH: &str = "/proc/thread-self/ns/ipc";
    Linux.unshare(Namespace::Ipc.flag()).map_err(|errno| Error::system("create an IPC namespace", errno))?;
    rustix::fs::open(PATH, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| Error::system(format!("open `{PATH}`"), errno))
}

const HELP: &str =
    "`jobc doctor` shows what this host allows; /proc/sys/user/max_net_namespaces may be reached";

/// Does some work in the network namespace of a process.
///
/// # Errors
///
/// An unprivileged user cannot enter it from outside of its user namespace.
pub(crate) fn in_namespace_of<T: Send>(pid: u32, work: impl FnOnce() -> T + Send) -> Result<T> {
    let path = format!("/proc/{pid}/ns/net");
    let namespace = rustix::fs::open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| Error::system(format!("open `{path}`"), errno))?;
    in_new_thread(|| enter(&namespace).map(|()| work()))
}

/// Moves this thread to an existing network namespace.
pub(super) fn enter(namespace: &OwnedFd) -> Result<()> {
    Linux
        .setns(namespace.as_raw_fd(), Namespace::Network.flag())
        .map_err(|errno| Error::system("enter a network namespace", errno))
}
