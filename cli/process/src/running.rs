//! A process, from its start to its end.

use std::io::{Read, Write as _};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::own_command::OwnCommand;

/// Maximum size of an output, in bytes. A process that writes more is killed.
const MAX_OUTPUT_BYTES: u64 = 16 << 20;
/// How often to check whether a process that has closed its output has exited.
const POLL: Duration = Duration::from_millis(2);

/// The output of a process that has ended.
#[derive(Debug)]
pub struct Finished {
    /// The exit code; nothing after a signal.
    pub code: Option<i32>,
    /// What it printed.
    pub stdout: String,
    /// What it printed on stderr.
    pub stderr: String,
}

/// A process, which can be killed with its children by any holder of it.
#[derive(Clone)]
pub struct Running(Arc<Mutex<Option<Child>>>);

/// Runs a command to its end. Dropping the future kills the process.
///
/// # Errors
/// It cannot be started, needs too long or writes too much, as a message.
pub async fn run(command: OwnCommand) -> Result<Finished, String> {
    let mut child = start(&command).map_err(|error| format!("cannot start jobc: {error}"))?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let running = Running::new(child);
    let guard = KillOnDrop(running.clone());
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let OwnCommand { stdin: text, timeout, .. } = command;
    std::thread::spawn(move || {
        // It may exit without reading all of it.
        let writer = std::thread::spawn(move || stdin.map(|mut pipe| pipe.write_all(&text)));
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
    let finished = tokio::time::timeout(timeout, receiver).await;
    drop(guard);
    let Ok(finished) = finished else {
        return Err(format!("timed out after {} s", timeout.as_secs()));
    };
    let (status, output, errors) = finished.map_err(|_| "the process was lost".to_owned())?;
    let Some(output) = output else {
        return Err(format!("the output has more than {} MiB", MAX_OUTPUT_BYTES >> 20));
    };
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(Finished { code: status.and_then(|status| status.code()), stdout: text(output), stderr: text(errors) })
}

fn start(command: &OwnCommand) -> std::io::Result<Child> {
    let mut process = command.process()?;
    process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
}

/// All of an output; nothing if it is too long.
fn read(pipe: Option<impl Read>) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    // If the output cannot be read to its end, the part that was read.
    let _ = pipe?.take(MAX_OUTPUT_BYTES + 1).read_to_end(&mut bytes);
    (bytes.len() as u64 <= MAX_OUTPUT_BYTES).then_some(bytes)
}

impl Running {
    /// A process of its own process group.
    pub fn new(child: Child) -> Self {
        Self(Arc::new(Mutex::new(Some(child))))
    }

    /// Waits for the end of the process. Its ID stays its own until then, so that no other process is killed.
    pub fn wait(&self) -> Option<ExitStatus> {
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

    /// Kills it with its process group.
    pub fn kill(&self) {
        let mut child = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(child) = child.as_mut() else { return };
        #[cfg(unix)]
        if let Some(group) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = child.kill();
    }

    /// Sends a signal to the process, not to its children.
    #[cfg(unix)]
    pub fn signal(&self, signal: rustix::process::Signal) {
        let child = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let id = child.as_ref().and_then(|child| i32::try_from(child.id()).ok());
        if let Some(process) = id.and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(process, signal);
        }
    }
}

struct KillOnDrop(Running);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.kill();
    }
}
