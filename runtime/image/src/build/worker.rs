//! The process that changes files of an image: root itself, or this program again as the root of a user namespace.
//!
//! An unprivileged user's images have files of other ids, which only a process in their user namespace can make and
//! read. Such a process does one order and ends; the builder's end is its end too, since it reads orders from the
//! builder.

use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::files::{self, CopyRequest};
use jobc_container::namespaces::Namespace;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::id_map::IdMaps;
use jobc_sys::syscall::Kernel as _;
use jobc_sys::syscall::linux::Linux;

/// The arguments with which this program becomes such a process.
pub const COMMAND: &str = "build-files";

/// How putting files into a tree went.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct CopyReport {
    /// Whether an owner could not be given, since this user has only one id.
    pub(super) owners_lost: bool,
}

/// The answer of the other process.
#[derive(Debug, Serialize, Deserialize)]
enum Response {
    Copied(CopyReport),
    Failed(Error),
}

/// Puts files into a tree, and waits until they are copied or `stopped` has become true.
pub(super) fn copy(copy: &CopyRequest, stopped: &AtomicBool) -> Result<CopyReport> {
    if !jobc_sys::host::needs_user_namespace() {
        // In its own thread, since its mounts on an older kernel are private to it.
        let done = std::thread::scope(|scope| scope.spawn(|| copy_here(copy, stopped)).join());
        return done.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }
    match copy_in_user_namespace(copy, stopped)? {
        Response::Failed(error) => Err(error),
        Response::Copied(copied) => Ok(copied),
    }
}

fn copy_here(copy: &CopyRequest, stopped: &AtomicBool) -> Result<CopyReport> {
    Ok(CopyReport { owners_lost: files::copy_files(copy, stopped)? })
}

/// Has this program do it in a user namespace.
fn copy_in_user_namespace(order: &CopyRequest, stopped: &AtomicBool) -> Result<Response> {
    let gone = |error: std::io::Error| {
        Error::system("communicate with the process that changes files", errno(&error))
    };
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    let maps = IdMaps::rootless(uid.as_raw(), gid.as_raw())?;
    let mut process = KillOnDrop(start(maps.groups_denied())?);
    let (Some(mut to), Some(mut from)) = (process.0.stdin.take(), process.0.stdout.take()) else {
        return Err(Error::new(Kind::State, "a process without pipes"));
    };
    let mut ready = [0];
    from.read_exact(&mut ready).map_err(gone)?;
    if ready == *NAMESPACE_READY {
        maps.write(process.0.id())?;
    }
    let text = serde_json::to_vec(order).map_err(|error| Error::new(Kind::State, error.to_string()))?;
    to.write_all(&(text.len() as u64).to_le_bytes()).and_then(|()| to.write_all(&text)).map_err(gone)?;
    let answer = std::thread::scope(|scope| {
        let (sender, receiver) = std::sync::mpsc::channel();
        scope.spawn(move || {
            let mut text = Vec::new();
            let read = from.read_to_end(&mut text).map(|_| text);
            let _ = sender.send(read);
        });
        loop {
            match receiver.recv_timeout(Duration::from_millis(50)) {
                Ok(read) => break read,
                Err(_) if stopped.load(Ordering::Relaxed) => {
                    let _ = process.0.kill();
                }
                Err(_) => {}
            }
        }
    });
    drop(to);
    if stopped.load(Ordering::Relaxed) {
        return Err(Error::new(Kind::State, "canceled"));
    }
    serde_json::from_slice(&answer.map_err(gone)?)
        .map_err(|_| Error::new(Kind::System, "the process that changes files exited early"))
}

/// The process; killed if it is dropped early.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The process's message that it is in its namespace and waits for its ids.
const NAMESPACE_READY: &[u8; 1] = b"m";

fn start(groups_denied: bool) -> Result<Child> {
    // The environment may contain secrets, so only `PATH` is passed on.
    let path = std::env::var_os("PATH").map(|path| ("PATH", path));
    Command::new("/proc/self/exe")
        .arg0("jobc")
        .arg(COMMAND)
        .args(groups_denied.then_some("deny"))
        .env_clear()
        .envs(path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| Error::system("re-execute this program", errno(&error)))
}

/// The whole life of the process; `deny` where setgroups(2) must be given up for the map of groups.
///
/// Its standard input is the builder's pipe.
pub fn main(mut words: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    let denied = words.next().is_some_and(|word| word == "deny");
    let answer = serve(denied).unwrap_or_else(Response::Failed);
    let on_message = serde_json::to_vec(&answer).is_ok_and(|text| std::io::stdout().write_all(&text).is_ok());
    if on_message { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn serve(denied: bool) -> Result<Response> {
    let gone = |error: std::io::Error| Error::system("communicate with the builder", errno(&error));
    // The end of the builder's thread, which waits for this process, is the end of it (prctl(2)).
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(|errno| Error::system("set the parent-death signal", errno))?;
    let help = "`jobc doctor` shows what this host allows";
    Linux
        .unshare(Namespace::User.flag() | Namespace::Mount.flag())
        .map_err(|errno| Error::system("create a user namespace", errno).help(help))?;
    if denied {
        std::fs::write("/proc/self/setgroups", "deny")
            .map_err(|error| Error::system("deny setgroups(2)", errno(&error)))?;
    }
    let mut stdout = std::io::stdout();
    stdout.write_all(NAMESPACE_READY).and_then(|()| stdout.flush()).map_err(gone)?;
    let mut input = std::io::stdin().lock();
    let mut size = [0; 8];
    input.read_exact(&mut size).map_err(gone)?;
    let mut text = Vec::new();
    input.take(u64::from_le_bytes(size)).read_to_end(&mut text).map_err(gone)?;
    let order: CopyRequest = serde_json::from_slice(&text)
        .map_err(|error| Error::new(Kind::State, format!("invalid request from the builder: {error}")))?;
    // The ids were mapped before the order came: here this user is root.
    if !rustix::process::geteuid().is_root() {
        return Err(Error::new(Kind::System, "the ids of the user namespace were not mapped"));
    }
    copy_here(&order, &AtomicBool::new(false)).map(Response::Copied)
}

fn errno(error: &std::io::Error) -> rustix::io::Errno {
    rustix::io::Errno::from_io_error(error).unwrap_or(rustix::io::Errno::IO)
}
