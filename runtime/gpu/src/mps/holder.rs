//! The process that holds an MPS daemon: this program again, for as long as a job has a slice of its cards.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use linux_raw_sys::general::MS_PRIVATE;
use rustix::fs::FlockOperation;
use rustix::mount::mount_bind_recursive;

use super::directories::{DaemonDirectories, try_lock};
use crate::paths;
use jobc_container::namespaces::Namespace;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::syscall::Kernel as _;
use jobc_sys::syscall::linux::Linux;
use jobc_sys::syscall::parent::kill_with_parent;

/// Its output when the daemon responds.
pub(super) const READY: &str = "ready";

/// How long the daemon may take to answer.
const START_TIMEOUT: Duration = Duration::from_secs(15);

/// How long it may take to end.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// The events it waits for.
enum Event {
    /// The daemon has no users left.
    Unused(std::fs::File),
    /// The daemon has ended.
    Exited,
}

/// The whole life of the process; `words` are what follows [`super::COMMAND`].
pub fn main(words: impl Iterator<Item = OsString>) -> ExitCode {
    // Replaces `exe` in lists of processes.
    let _ = std::fs::write("/proc/self/comm", "jobc-mps");
    let words: Vec<OsString> = words.collect();
    let [directory, program, cards, root] = &words[..] else {
        eprintln!("jobc: this command is internal: only a job's supervisor starts it");
        return ExitCode::from(2);
    };
    let daemon = Daemon {
        directories: DaemonDirectories::at(directory),
        program: program.into(),
        cards: cards.clone(),
        root: root.into(),
    };
    match daemon.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// A control daemon.
struct Daemon {
    directories: DaemonDirectories,
    program: PathBuf,
    cards: OsString,
    root: PathBuf,
}

impl Daemon {
    fn run(&self) -> Result<()> {
        // Our parent may end long before us; signals of its terminal are not for us.
        let _ = rustix::process::setsid();
        let held = try_lock(&self.directories.holder_lock(), false)?
            .ok_or_else(|| Error::new(Kind::State, "another process holds it already"))?;
        self.mount_private_shm()?;
        let mut control = self.command();
        let mut child = kill_with_parent(control.arg("-f").stdin(Stdio::null()).stdout(Stdio::null()))
            .spawn()
            .map_err(|error| failed("start `nvidia-cuda-mps-control`", &error))?;
        if let Err(error) = self.wait_until_ready(&mut child) {
            let _ = child.kill();
            let _ = child.wait();
            self.directories.kill_remaining();
            return Err(error);
        }
        println!("{READY}");
        let _ = std::io::stdout().flush();
        self.wait_until_unused(child);
        // A process that joins now finds that no process holds a daemon before it finds that there are no users.
        drop(held);
        Ok(())
    }

    /// A /dev/shm of the daemon's own, which its users get too, in a mount namespace of this process.
    fn mount_private_shm(&self) -> Result<()> {
        let made = |errno| Error::system("give an MPS daemon a /dev/shm of its own", errno);
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        if uid.is_root() {
            Linux.unshare(Namespace::Mount.flag()).map_err(made)?;
        } else {
            Linux.unshare(Namespace::User.flag() | Namespace::Mount.flag()).map_err(made)?;
            let (uid, gid) = (uid.as_raw(), gid.as_raw());
            // The same ids: the server distinguishes its users by them.
            let maps = [
                ("setgroups", "deny".to_owned()),
                ("uid_map", format!("{uid} {uid} 1")),
                ("gid_map", format!("{gid} {gid} 1")),
            ];
            for (name, text) in maps {
                std::fs::write(format!("/proc/self/{name}"), text)
                    .map_err(|error| failed("give an MPS daemon a /dev/shm of its own", &error))?;
            }
        }
        Linux.set_propagation(MS_PRIVATE.into()).map_err(made)?;
        mount_bind_recursive(self.directories.shm(), "/dev/shm").map_err(made)
    }

    /// The control program: the daemon and its client.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        let directory = self.program.parent().unwrap_or(Path::new("/usr/bin"));
        let path = std::env::var("PATH").unwrap_or_default();
        // The daemon starts `nvidia-cuda-mps-server`, which lies next to it.
        command.env("PATH", format!("{}:{path}", directory.display()));
        command.env("CUDA_MPS_PIPE_DIRECTORY", self.directories.pipes());
        command.env("CUDA_MPS_LOG_DIRECTORY", self.directories.logs());
        command.env("CUDA_VISIBLE_DEVICES", &self.cards);
        // The loader finds libraries only in this host's usual directories, not below another root or a driver mount.
        let is_own = self.root == Path::new("/");
        let directories = paths::LIBRARY_DIRECTORIES
            .iter()
            .filter(|directory| !is_own || directory.starts_with(paths::MOUNTED_DRIVER));
        let directories = directories.map(|directory| self.root.join(directory.trim_start_matches('/')));
        if let Ok(directories) = std::env::join_paths(directories.filter(|directory| directory.is_dir())) {
            command.env("LD_LIBRARY_PATH", directories);
        }
        command
    }

    /// Says something to the daemon; whether it took it.
    fn send_command(&self, words: &str) -> bool {
        let mut control = self.command();
        let spawned = kill_with_parent(control.stdin(Stdio::piped()).stdout(Stdio::null())).spawn();
        let Ok(mut control) = spawned else { return false };
        let sent = control.stdin.take().is_some_and(|mut input| writeln!(input, "{words}").is_ok());
        let taken = wait_timeout(&mut control, STOP_TIMEOUT);
        if taken.is_none() {
            let _ = control.kill();
            let _ = control.wait();
        }
        sent && taken == Some(true)
    }

    fn wait_until_ready(&self, child: &mut Child) -> Result<()> {
        let began = Instant::now();
        loop {
            if self.send_command("get_default_active_thread_percentage") {
                return Ok(());
            }
            if let Ok(Some(status)) = child.try_wait() {
                let line = self.last_log_line();
                return Err(Error::new(
                    Kind::System,
                    format!("`nvidia-cuda-mps-control` ended ({status}){line}"),
                ));
            }
            if began.elapsed() > START_TIMEOUT {
                return Err(Error::new(Kind::System, format!("it does not answer{}", self.last_log_line())));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The last line of the daemon's log, after a colon.
    fn last_log_line(&self) -> String {
        let text = std::fs::read_to_string(self.directories.logs().join("control.log")).unwrap_or_default();
        text.lines().last().map(|line| format!(": {line}")).unwrap_or_default()
    }

    /// Waits until the daemon has no users, and stops it; or until it exits itself.
    fn wait_until_unused(&self, mut child: Child) {
        let (sender, events) = mpsc::channel();
        let unused = sender.clone();
        let users = self.directories.users_lock();
        std::thread::spawn(move || {
            let lock = || {
                let file = std::fs::OpenOptions::new().write(true).open(&users).ok()?;
                while let Err(errno) = rustix::fs::flock(&file, FlockOperation::LockExclusive) {
                    if errno != rustix::io::Errno::INTR {
                        return None;
                    }
                }
                Some(file)
            };
            // If the lock file is gone, no process can use the daemon either.
            let _ = lock().map(|file| unused.send(Event::Unused(file)));
        });
        let pid = child.id();
        std::thread::spawn(move || {
            wait_for_exit(pid);
            sender.send(Event::Exited)
        });
        match events.recv() {
            // The lock is kept until everything is removed: a process that joins waits.
            Ok(Event::Unused(users)) => {
                self.send_command("quit");
                if wait_timeout(&mut child, STOP_TIMEOUT).is_none() {
                    let _ = child.kill();
                    let _ = child.wait();
                }
                self.directories.kill_remaining();
                self.directories.remove();
                // The holder's lock is released before this one: see `hold`.
                std::mem::forget(users);
            }
            Ok(Event::Exited) | Err(_) => {
                let _ = child.wait();
                eprintln!("the daemon exited unexpectedly{}", self.last_log_line());
                self.directories.kill_remaining();
            }
        }
    }
}

/// Waits for a child that others reap.
fn wait_for_exit(pid: u32) {
    if let Some(process) = jobc_sys::process::Process::of_child(pid) {
        while let Ok(false) = process.wait(u32::MAX / 2) {}
    }
}

/// Whether a child succeeds within a time; `None` if it does not exit.
fn wait_timeout(child: &mut Child, within: Duration) -> Option<bool> {
    let began = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status.success()),
            Err(_) => return Some(false),
            Ok(None) if began.elapsed() > within => {
                return None;
            }
            Ok(None) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

fn failed(what: &str, error: &std::io::Error) -> Error {
    Error::system(what, rustix::io::Errno::from_io_error(error).unwrap_or(rustix::io::Errno::IO))
}
