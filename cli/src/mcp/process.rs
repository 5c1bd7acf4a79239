//! Runs a command in its own process: with a timeout, a limit for its output, and until the call is canceled.

use std::io::{Read, Write as _};
use std::process::{Child, Command as StdCommand, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::confine;

use super::command::Command;
use super::root::Root;

/// Maximum size of an output, in bytes. A process that writes more is killed.
const MAX_OUTPUT_BYTES: u64 = 16 << 20;
/// How often to check whether a process that has closed its output has exited.
const POLL: Duration = Duration::from_millis(2);

/// What a confined command sees of the environment, besides variables that begin with `JOBC_`: a job's parameters can have
/// defaults from variables, and must not read secrets there.
const ENVIRONMENT: [&str; 15] = [
    "APPDATA",
    "HOME",
    "LANG",
    "LC_ALL",
    "LOCALAPPDATA",
    "PATH",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "TMPDIR",
    "TZ",
    "USERPROFILE",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
];

/// The remaining output of a process.
#[derive(Debug)]
pub(super) struct Finished {
    /// The exit code; nothing after a signal.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// A process that is killed with its children when this is dropped before its end.
#[derive(Clone)]
struct Running(Arc<Mutex<Option<Child>>>);

/// Runs a command to its end. Dropping the future kills the process.
///
/// # Errors
/// It cannot be started, needs too long or writes too much, as a message.
pub(super) async fn run(command: &Command, root: &Root) -> Result<Finished, String> {
    let mut child = start(command, root).map_err(|error| format!("cannot start jobc: {error}"))?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let running = Running(Arc::new(Mutex::new(Some(child))));
    let guard = KillOnDrop(running.clone());
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let text = command.stdin.clone();
    std::thread::spawn(move || {
        // It may exit without reading all of it.
        let writer = std::thread::spawn(move || stdin.map(|mut pipe| pipe.write_all(text.as_bytes())));
        let other = running.clone();
        let errors = std::thread::spawn(move || {
            let errors = read(stderr);
            if errors.is_none() {
                other.kill();
            }
            errors
        });
        let output = read(stdout);
        if output.is_none() {
            running.kill();
        }
        let errors = errors.join().ok().flatten().unwrap_or_default();
        let status = running.wait();
        let _ = writer.join();
        let _ = sender.send((status, output, errors));
    });
    let finished = tokio::time::timeout(command.timeout, receiver).await;
    drop(guard);
    let Ok(finished) = finished else {
        return Err(format!("timed out after {} s", command.timeout.as_secs()));
    };
    let (status, output, errors) = finished.map_err(|_| "the process was lost".to_owned())?;
    let Some(output) = output else {
        return Err(format!("the output has more than {} MiB", MAX_OUTPUT_BYTES >> 20));
    };
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(Finished { code: status.and_then(|status| status.code()), stdout: text(output), stderr: text(errors) })
}

fn start(command: &Command, root: &Root) -> std::io::Result<Child> {
    let mut process = StdCommand::new(std::env::current_exe()?);
    process.args(&command.words).current_dir(&command.directory);
    process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if command.is_confined {
        let is_kept = |name: &str| ENVIRONMENT.contains(&name) || name.starts_with("JOBC_");
        process.env_clear();
        process.envs(std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_kept)));
        process.env(confine::VARIABLE, root.path());
    }
    process.env("JOBC_COLOR", "never");
    // Its own process group, so that its children are killed with it.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut process, 0);
    process.spawn()
}

/// All of an output; nothing if it is too long.
fn read(pipe: Option<impl Read>) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    // If the output cannot be read to its end, the part that was read.
    let _ = pipe?.take(MAX_OUTPUT_BYTES + 1).read_to_end(&mut bytes);
    (bytes.len() as u64 <= MAX_OUTPUT_BYTES).then_some(bytes)
}

impl Running {
    /// Waits for the end of the process. Its ID stays its own until then, so that no other process is killed.
    fn wait(&self) -> Option<ExitStatus> {
        loop {
            {
                let mut child = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                match child.as_mut()?.try_wait() {
                    Ok(None) => {}
                    ended => {
                        *child = None;
                        return ended.ok().flatten();
                    }
                }
            }
            std::thread::sleep(POLL);
        }
    }

    fn kill(&self) {
        let mut child = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(child) = child.as_mut() else { return };
        #[cfg(unix)]
        if let Some(group) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = child.kill();
    }
}

struct KillOnDrop(Running);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.kill();
    }
}
