//! What a normal user has done in a user namespace: this program again, where the ids that the user was granted are its own.
//!
//! A process with threads cannot enter a user namespace, and one that did never comes back. So the work is another process's,
//! which makes the namespace, waits until its maps are written, is told what to do, and says how it goes, a line of JSON each.
//! What it copies to somebody, an archive, goes to its standard output.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Limits, Unpacking};
use crate::bundle::because;
use crate::error::{Error, Kind, Result};
use crate::id_map::IdMaps;
use crate::image::pack::{self, Pack};
use crate::image::{Descriptor, Digest, Platform, Progress, Store};
use crate::namespaces::Namespace;
use crate::root::archive::tree::Owners;
use crate::syscall::Kernel as _;
use crate::syscall::linux::Linux;

/// The first word of the command line of the process; whoever has a `main` gives it to [`become_worker`].
pub const COMMAND: &str = "image-worker";

/// What the process is to do.
#[derive(Debug, Serialize, Deserialize)]
enum Order {
    /// Unpack the layers of an image that are missing.
    Unpack {
        store: PathBuf,
        folder: PathBuf,
        image: Box<Descriptor>,
        platform: Platform,
        bytes: u64,
        entries: u64,
    },
    /// Write a folder of files as a layer.
    Pack { folder: PathBuf, pack: Pack },
    /// Copy layers into one folder.
    Copy { folders: Vec<PathBuf>, to: PathBuf },
    /// Remove a folder.
    Remove { folder: PathBuf },
}

/// What it says, a line each.
#[derive(Debug, Serialize, Deserialize)]
enum Said {
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

/// Unpacks what is missing with the ids of a user.
pub(super) fn unpack(of: &Unpacking<'_>, maps: &IdMaps) -> Result<()> {
    let order = Order::Unpack {
        store: of.store.root().to_owned(),
        folder: of.folder.clone(),
        image: Box::new(of.image.descriptor.clone()),
        platform: of.image.platform(),
        bytes: of.limits.bytes,
        entries: of.limits.entries,
    };
    let (mut worker, _) = Worker::start(maps, &order, Stdio::null())?;
    worker.attend(of.stopped, &mut |said| match said {
        Said::Layer { digest, done, total, known } => {
            (of.told)(Progress::Layer { digest, done, total, known });
        }
        Said::Note(text) => (of.told)(Progress::Note(text)),
        _ => {}
    })
}

/// Writes a folder as a layer with the ids of a user; what it gives is seen by `output`.
pub(in crate::image) fn pack(
    folder: &std::path::Path,
    pack: &Pack,
    maps: &IdMaps,
    output: &mut dyn Write,
) -> Result<()> {
    let order = Order::Pack { folder: folder.to_owned(), pack: pack.clone() };
    let (mut worker, archive) = Worker::start(maps, &order, Stdio::piped())?;
    let mut archive = archive.ok_or_else(gone)?;
    let copied = io::copy(&mut archive, output);
    drop(archive);
    let said = worker.attend(&AtomicBool::new(false), &mut |_| {});
    // Where nobody takes the archive, the worker's own error is only that.
    copied
        .map_err(|error| Error::new(Kind::Machine, format!("cannot write the layer: {}", because(&error))))?;
    said
}

/// Copies layers into one folder with the ids of a user.
pub(super) fn copy(folders: &[PathBuf], to: &std::path::Path, maps: &IdMaps) -> Result<()> {
    let order = Order::Copy { folders: folders.to_vec(), to: to.to_owned() };
    let (mut worker, _) = Worker::start(maps, &order, Stdio::null())?;
    worker.attend(&AtomicBool::new(false), &mut |_| {})
}

/// Removes a folder whose files belong to the ids of a user.
pub fn remove(folder: &std::path::Path, maps: &IdMaps) -> Result<()> {
    let (mut worker, _) = Worker::start(maps, &Order::Remove { folder: folder.to_owned() }, Stdio::null())?;
    worker.attend(&AtomicBool::new(false), &mut |_| {})
}

/// The process that works, as its maker knows it. It is killed when it is let go.
struct Worker {
    process: Child,
    line: BufReader<UnixStream>,
}

impl Worker {
    fn start(
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
    fn attend(&mut self, stopped: &AtomicBool, told: &mut dyn FnMut(Said)) -> Result<()> {
        let _ = self.line.get_ref().set_read_timeout(Some(Duration::from_millis(100)));
        let mut text = String::new();
        loop {
            if stopped.load(Ordering::Relaxed) {
                return Err(Error::new(Kind::State, "unpacking was given up"));
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

fn gone() -> Error {
    Error::new(Kind::Machine, "the process that works with the user's further ids has ended")
        .help("`jobc doctor` says what this machine allows")
}

/// The whole life of the process whose first word is [`COMMAND`].
///
/// Its standard input is its maker's socket, its standard output takes an archive.
pub fn become_worker(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    if words.next().is_some() {
        eprintln!("jobc: this command is for `jobc` alone");
        return ExitCode::from(2);
    }
    let Ok(line) = rustix::stdio::stdin().try_clone_to_owned().map(UnixStream::from) else {
        return ExitCode::from(2);
    };
    let said = Mutex::new(line);
    let say = |what: &Said| {
        let mut line = said.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let text = serde_json::to_string(what).unwrap_or_default();
        // Without its maker it is killed, or ends when it is done.
        let _ = writeln!(line, "{text}");
    };
    let end = match enter(&say).and_then(|order| carry_out(order, &say)) {
        Ok(()) => Said::Done,
        Err(error) => Said::Failed { message: error.message, help: error.help },
    };
    say(&end);
    ExitCode::SUCCESS
}

/// Becomes root of a new user namespace, and hears what is to be done.
fn enter(say: &dyn Fn(&Said)) -> Result<Order> {
    let _ = Linux.prctl(crate::syscall::Prctl::EndWithParent(true));
    Linux.unshare(Namespace::User.flag()).map_err(|errno| {
        Error::machine("make a user namespace", errno).help("`jobc doctor` says what this machine allows")
    })?;
    say(&Said::MapIds);
    let mut text = String::new();
    BufReader::new(File::from(rustix::stdio::stdin().try_clone_to_owned().map_err(|_| gone())?))
        .read_line(&mut text)
        .map_err(|_| gone())?;
    serde_json::from_str(&text).map_err(|_| gone())
}

fn carry_out(order: Order, say: &(dyn Fn(&Said) + Sync)) -> Result<()> {
    match order {
        Order::Unpack { store, folder, image, platform, bytes, entries } => {
            let store = Store::open(&store)?;
            let image = store.image(&image, &platform)?;
            let (limits, stopped) = (Limits { bytes, entries }, AtomicBool::new(false));
            let told = |progress| match progress {
                Progress::Layer { digest, done, total, known } => {
                    say(&Said::Layer { digest, done, total, known });
                }
                Progress::Note(text) => say(&Said::Note(text)),
                _ => {}
            };
            Unpacking::new(&store, &image, &limits, &told, &stopped, folder)?.unpack(Owners::Mapped)
        }
        Order::Pack { folder, pack } => {
            let output = rustix::stdio::stdout().as_fd().try_clone_to_owned().map(File::from);
            let output = output.map_err(|error| Error::new(Kind::Machine, because(&error)))?;
            let mut output = io::BufWriter::with_capacity(1 << 18, output);
            pack::write(&folder, &pack, &mut output)
        }
        Order::Copy { folders, to } => super::copy_here(&folders, &to),
        Order::Remove { folder } => crate::root::remove::remove(&folder),
    }
}
