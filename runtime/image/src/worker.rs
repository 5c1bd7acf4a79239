//! What an unprivileged user has done in a user namespace: this program again, where the ids that the user was granted
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
use crate::pack_options::Pack;
use crate::platform::Platform;
use jobc_schema::digest::Digest;
use jobc_sys::error::{Error, Kind, Result, because};
use jobc_sys::id_map::IdMaps;

/// The first argument of the process; a program's `main` passes it to [`become_worker`](crate::unpack::become_worker).
pub const COMMAND: &str = "image-worker";

/// What the process is to do.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Unpack the layers of an image that are missing.
    Unpack {
        store: PathBuf,
        directory: PathBuf,
        image: Box<Descriptor>,
        platform: Platform,
        bytes: u64,
        entries: u64,
    },
    /// Write a directory of files as a layer.
    Pack { directory: PathBuf, pack: Pack },
    /// Copy layers into one directory.
    Copy { directories: Vec<PathBuf>, to: PathBuf },
    /// Remove a directory.
    Remove { directory: PathBuf },
}

/// Its messages, one per line.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Said {
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
    Failed {
        message: String,
        help: Option<String>,
    },
}

/// Writes a directory as a layer with the ids of a user; what it gives is seen by `output`.
pub(crate) fn pack_apart(
    directory: &std::path::Path,
    pack: &Pack,
    maps: &IdMaps,
    output: &mut dyn Write,
) -> Result<()> {
    let order = Order::Pack { directory: directory.to_owned(), pack: pack.clone() };
    let (mut worker, archive) = Worker::start(maps, &order, Stdio::piped())?;
    let mut archive = archive.ok_or_else(gone)?;
    let copied = io::copy(&mut archive, output);
    drop(archive);
    let said = worker.attend(&AtomicBool::new(false), &mut |_| {});
    // If the reader of the archive is gone, the worker's own error only repeats that.
    copied
        .map_err(|error| Error::new(Kind::Machine, format!("cannot write the layer: {}", because(&error))))?;
    said
}

/// Removes a directory whose files belong to the ids of a user.
pub fn remove(directory: &std::path::Path, maps: &IdMaps) -> Result<()> {
    let (mut worker, _) =
        Worker::start(maps, &Order::Remove { directory: directory.to_owned() }, Stdio::null())?;
    worker.attend(&AtomicBool::new(false), &mut |_| {})
}

/// The process that works, as its maker knows it. It is killed when it is let go.
pub(crate) struct Worker {
    process: Child,
    line: BufReader<UnixStream>,
}

impl Worker {
    pub(crate) fn start(
        maps: &IdMaps,
        order: &Order,
        output: Stdio,
    ) -> Result<(Self, Option<std::process::ChildStdout>)> {
        let failed = |error: io::Error| {
            Error::new(Kind::Machine, format!("cannot start this program again: {}", because(&error)))
        };
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
        let mut worker = Self { process, line: BufReader::new(ours) };
        let Some(Said::MapIds) = worker.hear()? else { return Err(gone()) };
        maps.write(worker.process.id())?;
        let text = serde_json::to_string(order).map_err(|_| gone())?;
        writeln!(worker.line.get_mut(), "{text}").map_err(|_| gone())?;
        Ok((worker, archive))
    }

    /// Hears it out; `stopped` ends it.
    pub(crate) fn attend(&mut self, stopped: &AtomicBool, told: &mut dyn FnMut(Said)) -> Result<()> {
        let _ = self.line.get_ref().set_read_timeout(Some(Duration::from_millis(100)));
        let mut text = String::new();
        loop {
            if stopped.load(Ordering::Relaxed) {
                return Err(Error::new(Kind::State, "unpacking was canceled"));
            }
            match self.line.read_line(&mut text) {
                // What was read of a line stays in `text`.
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) =>
                {
                    continue;
                }
                Ok(0) | Err(_) => return Err(gone()),
                Ok(_) => {}
            }
            match serde_json::from_str(&text).map_err(|_| gone())? {
                Said::Done => return Ok(()),
                Said::Failed { message, help } => {
                    return Err(Error { help, ..Error::new(Kind::Machine, message) });
                }
                said => told(said),
            }
            text.clear();
        }
    }

    fn hear(&mut self) -> Result<Option<Said>> {
        let mut text = String::new();
        match self.line.read_line(&mut text) {
            Ok(0) | Err(_) => Err(gone()),
            Ok(_) => match serde_json::from_str(&text).map_err(|_| gone())? {
                Said::Failed { message, help } => Err(Error { help, ..Error::new(Kind::Machine, message) }),
                said => Ok(Some(said)),
            },
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.line.get_ref().shutdown(Shutdown::Both);
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(crate) fn gone() -> Error {
    Error::new(Kind::Machine, "the user-namespace worker has exited")
        .help("`jobc doctor` shows what this host allows")
}
