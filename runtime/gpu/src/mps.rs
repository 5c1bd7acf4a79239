//! NVIDIA's Multi-Process Service: a server of the driver's that several tasks use cards through, each within its
//! limits.
//!
//! There is one control daemon for each set of cards that tasks of a user share, as a program has one server for all of
//! its cards. It is started with the first job that has a slice there, and runs as long as any job has one: a
//! [holder](holder) process waits for the lock that those jobs' supervisors share. The kernel releases a supervisor's
//! lock however it dies, so the daemon ends with the last of them. If the holder itself is killed, the kernel kills the
//! daemon with it, and the next command removes what is left ([`sweep`]).
//!
//! Tasks have the daemon's pipe directory at CUDA's default path, and its /dev/shm, through which programs and the
//! server communicate (docs.nvidia.com/deploy/mps; NVIDIA's device plugin for Kubernetes does the same).

mod directories;
pub mod holder;

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use oci_spec::runtime::Spec;

use super::bind_mounts::bind_mount;
use super::cdi::edit;
use super::device_names::short_name;
use super::host::Host;
use super::inventory::DeviceId;
use super::lease::Slot;
pub use directories::sweep;
use directories::{DaemonDirectories, try_lock};
use jobc_sys::error::{Error, Kind, Result};

/// The first word of the hidden command that holds a daemon: `jobc hold-mps DIRECTORY PROGRAM CARDS ROOT`.
pub const COMMAND: &str = "hold-mps";

/// The path of the daemon's pipes in a container: CUDA's default path.
const PIPE_DIRECTORY: &str = "/tmp/nvidia-mps";

/// How long a daemon may take to answer, and another job's to end.
const DAEMON_TIMEOUT: Duration = Duration::from_secs(20);

const MIB: u64 = 1 << 20;

/// A daemon that must run.
#[derive(Clone, Debug)]
pub struct Server<'a> {
    /// `nvidia-cuda-mps-control`.
    pub program: &'a Path,
    /// Where the driver is.
    pub host: &'a Host,
    /// Its cards, in the order in which tasks see them.
    pub cards: &'a [DeviceId],
    /// Their names in the driver.
    pub names: Vec<String>,
}

/// A job's share of a daemon, which runs at least as long as this exists.
#[derive(Debug)]
pub struct Client {
    directories: DaemonDirectories,
    _users: File,
}

/// The parent directory of a user's daemons: next to that of their jobs' state.
pub fn directory(jobs: &Path) -> PathBuf {
    jobs.with_file_name("mps")
}

/// Joins a daemon's users; starts it if there is none.
///
/// # Errors
///
/// The daemon could not be started; with its output.
pub fn join(directory: &Path, server: &Server<'_>, stopped: &AtomicBool) -> Result<Client> {
    let name: Vec<String> = server.cards.iter().map(|card| short_name(*card)).collect();
    let place = DaemonDirectories::create(directory, &name.join("-"))?;
    let began = Instant::now();
    loop {
        if let Some(_joining) = try_lock(&place.joining_lock(), false)?
            && let Some(users) = {
                place.create_directories()?;
                try_lock(&place.users_lock(), true)?
            }
        {
            if try_lock(&place.holder_lock(), false)?.is_some() {
                // No process holds a daemon: the existing files belong to one that was killed.
                place.kill_remaining();
                start(&place, server)?;
            }
            return Ok(Client { directories: place, _users: users });
        }
        if stopped.load(Ordering::Acquire) {
            return Err(Error::new(Kind::State, "the job was stopped before it started"));
        }
        if began.elapsed() > DAEMON_TIMEOUT {
            let message = format!("the MPS daemon of GPU {} does not end", name.join(", "));
            return Err(Error::new(Kind::System, message)
                .help(format!("see `{}`, and end its process", place.log().display())));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Starts the holder and waits until its daemon answers.
fn start(place: &DaemonDirectories, server: &Server<'_>) -> Result<()> {
    let describe = |error: &std::io::Error| {
        let errno = rustix::io::Errno::from_io_error(error).unwrap_or(rustix::io::Errno::IO);
        Error::system("start the process that holds an MPS daemon", errno)
    };
    let log = File::create(place.log()).map_err(|error| describe(&error))?;
    let path = std::env::var_os("PATH").map(|path| ("PATH", path));
    let mut command = Command::new("/proc/self/exe");
    command.arg0("jobc").arg(COMMAND).arg(place.directory()).arg(server.program).arg(server.names.join(","));
    command.arg(server.host.root()).env_clear().envs(path).current_dir("/");
    let mut holder = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .map_err(|error| describe(&error))?;
    let (sender, receiver) = mpsc::channel();
    let out = holder.stdout.take();
    std::thread::spawn(move || {
        let mut line = String::new();
        let _ = out.map(|out| BufReader::new(out).read_line(&mut line));
        // The process that requested it may not have waited.
        let _ = sender.send(line);
    });
    let line = receiver.recv_timeout(DAEMON_TIMEOUT).unwrap_or_default();
    if line.trim() == holder::READY {
        // It ends with its users, possibly long after this process; a separate thread reaps it.
        std::thread::spawn(move || holder.wait());
        return Ok(());
    }
    let _ = holder.kill();
    let _ = holder.wait();
    place.kill_remaining();
    let why = if line.is_empty() { "it does not answer" } else { line.trim() };
    Err(Error::new(
        Kind::System,
        format!("the MPS daemon of GPU {} does not start: {why}", server.names.join(", ")),
    )
    .help(format!("see `{}`, or share the card in another way with `--gpu-share`", place.log().display())))
}

impl Client {
    /// Gives a task's container access to the server, and its limits. Returns notes for the user.
    ///
    /// The limits are numbered as the server's cards are, which are the container's in the same order.
    pub(super) fn configure(&self, spec: &mut Spec, slots: &[Slot]) -> Vec<String> {
        edit::add_mount(spec, bind_mount(&self.directories.pipes(), Path::new(PIPE_DIRECTORY), false));
        let mut shared = bind_mount(&self.directories.shm(), Path::new("/dev/shm"), false);
        let options = shared.options_mut().get_or_insert_default();
        options.push("noexec".to_owned());
        edit::add_mount(spec, shared);
        let slices = slots.iter().filter_map(|slot| slot.slice.as_ref());
        let limits: Vec<String> = slices
            .clone()
            .enumerate()
            .filter_map(|(number, slice)| Some(format!("{number}={}M", (slice.memory_bytes? / MIB).max(1))))
            .collect();
        edit::set_variable(spec, &format!("CUDA_MPS_PIPE_DIRECTORY={PIPE_DIRECTORY}"));
        if !limits.is_empty() {
            edit::set_variable(spec, &format!("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT={}", limits.join(",")));
        }
        if let Some(percent) = slices.clone().find_map(|slice| slice.cores_percent) {
            edit::set_variable(spec, &format!("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE={percent}"));
        }
        let user = spec.process().as_ref().map_or(0, |process| process.user().uid());
        if user == 0 {
            return Vec::new();
        }
        vec![format!(
            "an MPS server serves one user at a time: tasks of user {user} wait for those of others on the same cards"
        )]
    }
}

#[cfg(test)]
mod tests;
