//! Work that an unprivileged user does in a user namespace: this program again, where the ids that the user was granted
//! are its own.
//!
//! A process with threads cannot enter a user namespace, and a process that entered one cannot leave it. So another
//! process does the work: it creates the namespace, waits until its maps are written, reads its request, and reports
//! its progress, as lines of JSON. Bulk output such as an archive goes to its standard output.

use std::io::{self, BufRead as _, BufReader, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::manifest::Descriptor;
use crate::pack_options::PackOptions;
use crate::platform::Platform;
use jobc_schema::digest::Digest;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::id_map::IdMaps;

/// The first argument of the process; a program's `main` passes it to [`become_worker`](crate::unpack::become_worker).
pub const COMMAND: &str = "image-worker";

/// The task of the process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum WorkerRequest {
    /// Unpack the layers of an image that are missing.
    Unpack {
        store: PathBuf,
        shared: Vec<PathBuf>,
        directory: PathBuf,
        image: Box<Descriptor>,
        platform: Platform,
        bytes: u64,
        entries: u64,
        is_incoming: bool,
    },
    /// Write a directory of files as a layer.
    Pack { directory: PathBuf, pack: PackOptions },
    /// Copy layers into one directory.
    Copy { directories: Vec<PathBuf>, to: PathBuf },
    /// Remove a directory.
    Remove { directory: PathBuf },
}

/// Its messages, one per line.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum WorkerMessage {
    /// It is in its namespace and waits for the maps.
    MapIds,
    Layer {
        digest: Digest,
        done: u64,
        total: u64,
        known: bool,
    },
    Note(String),
    Done,
    Failed(Error),
}

/// Writes a directory as a layer with the ids of a user; `output` gets the bytes.
pub(crate) fn pack_in_worker(
    directory: &std::path::Path,
    pack: &PackOptions,
    maps: &IdMaps,
    output: &mut dyn Write,
) -> Result<()> {
    let order = WorkerRequest::Pack { directory: directory.to_owned(), pack: pack.clone() };
    let (mut worker, archive) = Worker::start(maps, &order, Stdio::piped())?;
    let mut archive = archive.ok_or_else(worker_exited)?;
    let copied = io::copy(&mut archive, output);
    drop(archive);
    let message = worker.wait(&AtomicBool::new(false), &mut |_| {});
    // If the reader of the archive is gone, the worker's own error only repeats that.
    copied.map_err(|error| Error::new(Kind::System, "cannot write the layer").because(error))?;
    message
}

/// Removes a directory whose files belong to the ids of a user.
pub fn remove(directory: &std::path::Path, maps: &IdMaps) -> Result<()> {
    let (mut worker, _) =
        Worker::start(maps, &WorkerRequest::Remove { directory: directory.to_owned() }, Stdio::null())?;
    worker.wait(&AtomicBool::new(false), &mut |_| {})
}

/// The caller's handle to the worker process. Dropping it kills the process.
pub(crate) struct Worker {
    process: Child,
    socket: BufReader<UnixStream>,
}

impl Worker {
    pub(crate) fn start(
        maps: &IdMaps,
        order: &WorkerRequest,
        output: Stdio,
    ) -> Result<(Self, Option<std::process::ChildStdout>)> {
        let failed =
            |error: io::Error| Error::new(Kind::System, "cannot start this program again").because(error);
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        let path = std::env::var_os("PATH").map(|path| ("PATH", path));
        let mut process = Command::new("/proc/self/exe")
            .arg0("jobc")
            .arg(COMMAND)
            .env_clear()
            .envs(path)
            .stdin(OwnedFd::from(theirs))
            .stdout(output)
            .spawn()
            .map_err(failed)?;
        let archive = process.stdout.take();
        let mut worker = Self { process, socket: BufReader::new(ours) };
        let Some(WorkerMessage::MapIds) = worker.receive()? else { return Err(worker_exited()) };
        maps.write(worker.process.id())?;
        let text = serde_json::to_string(order).map_err(|_| worker_exited())?;
        writeln!(worker.socket.get_mut(), "{text}").map_err(|_| worker_exited())?;
        Ok((worker, archive))
    }

    /// Hears it out; `stopped` ends it.
    pub(crate) fn wait(
        &mut self,
        stopped: &AtomicBool,
        on_message: &mut dyn FnMut(WorkerMessage),
    ) -> Result<()> {
        let _ = self.socket.get_ref().set_read_timeout(Some(Duration::from_millis(100)));
        let mut text = String::new();
        loop {
            if stopped.load(Ordering::Relaxed) {
                return Err(Error::new(Kind::State, "unpacking was canceled"));
            }
            match self.socket.read_line(&mut text) {
                // The part of a line that was read stays in `text`.
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) =>
                {
                    continue;
                }
                Ok(0) | Err(_) => return Err(worker_exited()),
                Ok(_) => {}
            }
            match serde_json::from_str(&text).map_err(|_| worker_exited())? {
                WorkerMessage::Done => return Ok(()),
                WorkerMessage::Failed(error) => return Err(error),
                result => on_message(result),
            }
            text.clear();
        }
    }

    fn receive(&mut self) -> Result<Option<WorkerMessage>> {
        let mut text = String::new();
        match self.socket.read_line(&mut text) {
            Ok(0) | Err(_) => Err(worker_exited()),
            Ok(_) => match serde_json::from_str(&text).map_err(|_| worker_exited())? {
                WorkerMessage::Failed(error) => Err(error),
                result => Ok(Some(result)),
            },
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.socket.get_ref().shutdown(Shutdown::Both);
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(crate) fn worker_exited() -> Error {
    Error::new(Kind::System, "the user-namespace worker has exited")
        .help("`jobc doctor` shows what this host allows")
}
