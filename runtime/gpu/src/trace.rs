//! Traces the calls of a running task to GPU drivers: its syscalls on their nodes, counted and timed by strace(1).
//!
//! strace stops the traced processes at every one of these calls, so they run slower while traced; the times that it
//! reports are times in the kernel and stay valid. It attaches from outside, to every process of the task, and follows
//! those that they start.

mod calls;
mod line;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

pub use calls::{CallCounts, Calls};

use jobc_sys::error::{Error, Kind, Result};
use line::LineJoiner;

/// The calls that are traced.
const TRACED_CALLS: &str = "trace=open,openat,openat2,mmap,ioctl";

/// How long strace may take to let go.
const DETACH_TIMEOUT: Duration = Duration::from_secs(5);

/// Traces processes and what they start, for so long or until they have ended.
///
/// # Errors
///
/// strace is not installed, or may not attach.
pub fn trace(processes: &[u32], duration: Duration, stopped: impl Fn() -> bool) -> Result<Calls> {
    let mut strace = start(processes)?;
    let (send, lines) = channel();
    if let Some(stderr) = strace.stderr.take() {
        std::thread::spawn(move || forward(stderr, &send));
    }
    let mut output = StraceOutput::default();
    let began = Instant::now();
    while let Some(left) = duration.checked_sub(began.elapsed()).filter(|_| !stopped()) {
        if !output.receive(&lines, left.min(Duration::from_millis(100))) {
            break;
        }
    }
    output.calls.seconds = began.elapsed().as_secs_f64();
    let status = detach(&mut strace);
    // Its output until then is in the pipe.
    while output.receive(&lines, DETACH_TIMEOUT) {}
    output.finish(status)
}

fn start(processes: &[u32]) -> Result<Child> {
    let mut command = Command::new("strace");
    // Numbers of files with their names, the time in each call, and no signals.
    command.args(["-f", "-y", "-T", "-qq", "-s", "256", "-e", TRACED_CALLS, "-e", "signal=none"]);
    for process in processes {
        command.args(["-p", &process.to_string()]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            Error::new(Kind::System, "`strace` is not installed").help("install the package `strace`")
        }
        _ => Error::new(Kind::System, format!("cannot start `strace`: {error}")),
    })
}

fn forward(stderr: ChildStderr, lines: &Sender<String>) {
    let mut reader = BufReader::new(stderr);
    let mut bytes = vec![];
    while matches!(reader.read_until(b'\n', &mut bytes), Ok(length) if length > 0) {
        if lines.send(String::from_utf8_lossy(&bytes).trim_end().to_owned()).is_err() {
            return;
        }
        bytes.clear();
    }
}

/// Asks strace to detach; if it does not, it is killed, and the kernel resumes the traced processes.
fn detach(strace: &mut Child) -> Option<ExitStatus> {
    if let Some(pid) = i32::try_from(strace.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::INT);
    }
    let detached_at = Instant::now();
    while detached_at.elapsed() < DETACH_TIMEOUT {
        match strace.try_wait() {
            Ok(None) => std::thread::sleep(Duration::from_millis(10)),
            Ok(status) => return status,
            Err(_) => break,
        }
    }
    let _ = strace.kill();
    strace.wait().ok()
}

/// strace's output.
#[derive(Default)]
struct StraceOutput {
    lines: LineJoiner,
    calls: Calls,
    /// Its messages about itself.
    messages: Vec<String>,
    has_calls: bool,
}

impl StraceOutput {
    /// Takes one line in; false when there will be no more.
    fn receive(&mut self, lines: &Receiver<String>, timeout: Duration) -> bool {
        match lines.recv_timeout(timeout) {
            Ok(line) => {
                if let Some(complaint) = line.strip_prefix("strace: ") {
                    self.messages.push(complaint.to_owned());
                } else {
                    self.has_calls = true;
                    self.calls.count(self.lines.push(&line));
                }
                true
            }
            Err(RecvTimeoutError::Timeout) => true,
            Err(RecvTimeoutError::Disconnected) => false,
        }
    }

    fn finish(self, status: Option<ExitStatus>) -> Result<Calls> {
        let refused = self.messages.iter().find(|line| line.contains("ptrace") || line.contains("attach"));
        match refused {
            Some(line) if !self.has_calls && status.is_none_or(|status| !status.success()) => {
                Err(attach_error(line))
            }
            _ => Ok(self.calls),
        }
    }
}

/// Why strace may not attach, and what would let it.
fn attach_error(line: &str) -> Error {
    let error = Error::new(Kind::System, format!("strace may not attach to the task: {line}"));
    let yama = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    error.help(match yama.trim() {
        "3" => "tracing is disabled until the host reboots (kernel.yama.ptrace_scope is 3)".to_owned(),
        "" | "0" => "trace as root, or as the user who runs the job; a process that a debugger traces cannot be traced twice"
            .to_owned(),
        scope => format!("trace as root: kernel.yama.ptrace_scope is {scope}"),
    })
}

/// A process and all that descend from it.
pub fn process_tree(first: u32) -> Vec<u32> {
    let mut all = vec![first];
    let mut next = 0;
    while let Some(&process) = all.get(next) {
        next += 1;
        let tasks = std::fs::read_dir(Path::new("/proc").join(process.to_string()).join("task"));
        for task in tasks.into_iter().flatten().flatten() {
            let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            all.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
    }
    all
}

#[cfg(test)]
mod tests;
