//! Unpacking and copying in a process in a user namespace: the side of the caller and that of the process (see
//! [`worker`](crate::worker)).

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use super::copy_layers::copy_here;
use super::limits::Limits;
use super::unpacker::Unpacker;
use crate::ownership::LayerDirectories;
use crate::pack;
use crate::progress::Progress;
use crate::store::Store;
use crate::worker::{Worker, WorkerMessage, WorkerRequest, worker_exited};
use jobc_container::archive::tree::Owners;
use jobc_container::namespaces::Namespace;
use jobc_sys::error::{Error, Kind, Result, describe_io};
use jobc_sys::id_map::IdMaps;
use jobc_sys::syscall::Kernel as _;
use jobc_sys::syscall::linux::Linux;

/// Unpacks what is missing with the ids of a user.
pub(super) fn unpack(of: &Unpacker<'_>, maps: &IdMaps) -> Result<()> {
    let order = WorkerRequest::Unpack {
        store: of.store.root().to_owned(),
        shared: of.store.shared_roots(),
        directory: of.directories.own.clone(),
        image: Box::new(of.image.descriptor.clone()),
        platform: of.image.platform(),
        bytes: of.limits.bytes,
        entries: of.limits.entries,
        is_incoming: of.is_incoming,
    };
    let (mut worker, _) = Worker::start(maps, &order, Stdio::null())?;
    worker.wait(of.stopped, &mut |message| match message {
        WorkerMessage::Layer { digest, done, total, known } => {
            (of.progress)(Progress::Layer { digest, done, total, known });
        }
        WorkerMessage::Note(text) => (of.progress)(Progress::Note(text)),
        _ => {}
    })
}

/// Copies layers into one directory with the ids of a user.
pub(super) fn copy(directories: &[PathBuf], to: &std::path::Path, maps: &IdMaps) -> Result<()> {
    let order = WorkerRequest::Copy { directories: directories.to_vec(), to: to.to_owned() };
    let (mut worker, _) = Worker::start(maps, &order, Stdio::null())?;
    worker.wait(&AtomicBool::new(false), &mut |_| {})
}

/// The whole life of the process whose first word is [`COMMAND`](crate::worker::COMMAND).
///
/// Its standard input is its maker's socket, its standard output takes an archive.
pub fn become_worker(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    if words.next().is_some() {
        eprintln!("jobc: this command is internal: only `jobc` starts it");
        return ExitCode::from(2);
    }
    let Ok(line) = rustix::stdio::stdin().try_clone_to_owned().map(UnixStream::from) else {
        return ExitCode::from(2);
    };
    let message = Mutex::new(line);
    let say = |what: &WorkerMessage| {
        let mut line = message.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let text = serde_json::to_string(what).unwrap_or_default();
        // Without its maker it is killed, or ends when it is done.
        let _ = writeln!(line, "{text}");
    };
    let end = match enter_namespace(&say).and_then(|order| handle(order, &say)) {
        Ok(()) => WorkerMessage::Done,
        Err(error) => WorkerMessage::Failed(error),
    };
    say(&end);
    ExitCode::SUCCESS
}

/// Becomes root of a new user namespace, and reads the request.
fn enter_namespace(say: &dyn Fn(&WorkerMessage)) -> Result<WorkerRequest> {
    let _ = Linux.prctl(jobc_sys::syscall::Prctl::EndWithParent(true));
    Linux.unshare(Namespace::User.flag()).map_err(|errno| {
        Error::system("create a user namespace", errno).help("`jobc doctor` shows what this host allows")
    })?;
    say(&WorkerMessage::MapIds);
    let mut text = String::new();
    BufReader::new(File::from(rustix::stdio::stdin().try_clone_to_owned().map_err(|_| worker_exited())?))
        .read_line(&mut text)
        .map_err(|_| worker_exited())?;
    serde_json::from_str(&text).map_err(|_| worker_exited())
}

fn handle(order: WorkerRequest, say: &(dyn Fn(&WorkerMessage) + Sync)) -> Result<()> {
    match order {
        WorkerRequest::Unpack { store, shared, directory, image, platform, bytes, entries, is_incoming } => {
            // The shared stores that its caller can read are readable here too.
            let (store, _) = Store::open_above(&store, &shared)?;
            let directories = LayerDirectories { own: directory, shared: Vec::new() };
            let image = store.image(&image, &platform)?;
            let (limits, stopped) = (Limits { bytes, entries }, AtomicBool::new(false));
            let on_message = |progress| match progress {
                Progress::Layer { digest, done, total, known } => {
                    say(&WorkerMessage::Layer { digest, done, total, known });
                }
                Progress::Note(text) => say(&WorkerMessage::Note(text)),
                _ => {}
            };
            let unpacker = Unpacker::new(&store, &image, &limits, &on_message, &stopped, directories)?;
            Unpacker { is_incoming, ..unpacker }.unpack(Owners::Mapped)
        }
        WorkerRequest::Pack { directory, pack } => {
            let output = rustix::stdio::stdout().as_fd().try_clone_to_owned().map(File::from);
            let output = output.map_err(|error| Error::new(Kind::System, describe_io(&error)))?;
            let mut output = io::BufWriter::with_capacity(1 << 18, output);
            pack::write(&directory, &pack, &mut output)
        }
        WorkerRequest::Copy { directories, to } => copy_here(&directories, &to),
        WorkerRequest::Remove { directory } => jobc_container::remove::remove(&directory),
    }
}
