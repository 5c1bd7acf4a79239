//! Resources that a service manager passes to a container: sockets (sd_listen_fds(3)) and a socket for readiness
//! (sd_notify(3)), as in runc.

use std::fs::{self, Permissions};
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;

use jobc_container::bundle::Bundle;
use jobc_sys::error::{AtPath as _, Error, Result};
use oci_spec::runtime::{Mount, Spec};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

/// Where the container has the directory with the socket.
const CONTAINER_DIRECTORY: &str = "/run/notify";

/// How long the service manager may take to confirm that it has read everything.
const BARRIER_TIMEOUT: Timespec = Timespec { tv_sec: 30, tv_nsec: 0 };

/// How many file descriptors socket activation passes to this process; the first process of the container gets them
/// with the variables that say so.
pub(crate) fn pass_listen_fds(bundle: &mut Bundle) -> u32 {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u32>().ok());
    let Some(count) = number("LISTEN_FDS").filter(|count| *count > 0) else { return 0 };
    if number("LISTEN_PID") != Some(std::process::id()) {
        return 0;
    }
    add_environment(&mut bundle.config.spec, [format!("LISTEN_FDS={count}"), "LISTEN_PID=1".to_owned()]);
    count
}

fn add_environment(spec: &mut Spec, variables: impl IntoIterator<Item = String>) {
    if let Some(process) = spec.process_mut() {
        process.env_mut().get_or_insert_default().extend(variables);
    }
}

/// A socket on which a container reports readiness, and the service manager to notify.
#[derive(Debug)]
pub(crate) struct Readiness {
    socket: UnixDatagram,
    manager: UnixDatagram,
}

impl Readiness {
    /// Gives a container a directory for the socket, where this process has a service manager to notify.
    ///
    /// `state` is the container's own directory.
    pub(crate) fn offer(state: &Path, bundle: &mut Bundle) -> Result<bool> {
        if manager_address().is_none() {
            return Ok(false);
        }
        let directory = state.join("notify");
        fs::create_dir(&directory)
            .and_then(|()| fs::set_permissions(&directory, Permissions::from_mode(0o755)))
            .at_path("make", &directory)?;
        let mut mount = Mount::default();
        mount
            .set_destination(CONTAINER_DIRECTORY.into())
            .set_source(Some(directory))
            .set_options(Some(["bind", "nosuid", "noexec", "nodev", "ro"].map(str::to_owned).to_vec()));
        let spec = &mut bundle.config.spec;
        spec.mounts_mut().get_or_insert_default().push(mount);
        add_environment(spec, [format!("NOTIFY_SOCKET={CONTAINER_DIRECTORY}/notify.sock")]);
        Ok(true)
    }

    /// Opens the socket of a container that has a directory for it.
    pub(crate) fn open(state: &Path) -> Result<Option<Self>> {
        let directory = state.join("notify");
        let Some(address) = manager_address().filter(|_| directory.is_dir()) else { return Ok(None) };
        let manager = UnixDatagram::unbound().and_then(|manager| {
            manager.connect_addr(&address?)?;
            Ok(manager)
        });
        let manager = manager.at_path("connect to", Path::new("NOTIFY_SOCKET"))?;
        let path = directory.join("notify.sock");
        let socket = UnixDatagram::bind(&path)
            .and_then(|socket| fs::set_permissions(&path, Permissions::from_mode(0o777)).map(|()| socket))
            .at_path("make the socket", &path)?;
        Ok(Some(Self { socket, manager }))
    }

    /// Waits until the container says that it is ready, and tells the service manager which process `main` it is to
    /// watch; or until `first`, the container's first process, has ended.
    pub(crate) fn forward(&self, first: BorrowedFd<'_>, main: u32) -> Result<()> {
        let failed = |errno| Error::system("notify the service manager", errno);
        loop {
            let mut polled =
                [PollFd::new(&self.socket, PollFlags::IN), PollFd::from_borrowed_fd(first, PollFlags::IN)];
            match poll(&mut polled, None) {
                Err(rustix::io::Errno::INTR) => continue,
                other => other.map_err(failed)?,
            };
            if polled[0].revents().is_empty() {
                return Ok(());
            }
            let mut message = [0; 4096];
            let Ok(length) = self.socket.recv(&mut message) else { continue };
            let mut lines = message[..length].split(|byte| *byte == b'\n');
            if let Some(ready) = lines.find(|line| line.starts_with(b"READY=")) {
                return self.notify(ready, main).map_err(failed);
            }
        }
    }

    fn notify(&self, ready: &[u8], main: u32) -> rustix::io::Result<()> {
        let text = [ready, b"\nMAINPID=", main.to_string().as_bytes(), b"\n"].concat();
        rustix::net::send(&self.manager, &text, SendFlags::NOSIGNAL)?;
        // A manager that looks this process up by its number must have done so before it exits.
        let (confirmed, barrier) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let descriptors = [barrier.as_fd()];
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
        let text = [IoSlice::new(b"BARRIER=1")];
        rustix::net::sendmsg(&self.manager, &text, &mut ancillary, SendFlags::NOSIGNAL)?;
        drop(barrier);
        poll(&mut [PollFd::new(&confirmed, PollFlags::HUP)], Some(&BARRIER_TIMEOUT)).map(drop)
    }
}

/// The service manager's socket: a path, or with an `@` an abstract name.
fn manager_address() -> Option<std::io::Result<SocketAddr>> {
    let name = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty())?.into_vec();
    Some(match name.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(&name)),
    })
}
