//! The output of a command in a task as JSON: objects as in `jobc logs --format json`, and its end.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::thread::JoinHandle;
use std::time::SystemTime;

use jobc_place::logs::{Line, Stream};
use jobc_place::task::TaskStatus;
use jobc_sys::error::{Error, Result};
use jobc_sys::readable;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use serde_json::json;

use crate::runtime::commands::follow::output::{OutputStreams, or_exit};
use crate::runtime::commands::follow::printer::{LineFormat, Printer};
use crate::terminal;

/// Maximum length of a line that is shown as one object, as in logs.
const MAX_LINE_BYTES: usize = 64 << 10;

/// The stdout and stderr of a program.
pub(super) struct CommandOutput {
    job: String,
    task: String,
    attempt: u32,
    /// Our ends of its two pipes, which are non-blocking.
    pipes: [OwnedFd; 2],
}

/// The thread that shows the output. It reads until it is notified of the program's end: background processes of the
/// program may keep the pipes open.
pub(super) struct OutputThread {
    job: String,
    task: String,
    thread: JoinHandle<()>,
    /// Closed to signal the end of the program.
    end: OwnedFd,
}

impl CommandOutput {
    /// Creates the pipes; also returns the program's ends.
    pub(super) fn new(job: &str, task: Option<&TaskStatus>) -> Result<(Self, [OwnedFd; 2])> {
        let ((out, its_out), (error, its_error)) = (pipe()?, pipe()?);
        for ours in [&out, &error] {
            rustix::fs::fcntl_setfl(ours, rustix::fs::OFlags::NONBLOCK).map_err(pipe_error)?;
        }
        let name = task.map(|task| task.task.to_string()).unwrap_or_default();
        let attempt = task.map_or(1, |task| task.attempt);
        Ok((Self { job: job.to_owned(), task: name, attempt, pipes: [out, error] }, [its_out, its_error]))
    }

    /// Starts a thread that shows the output.
    pub(super) fn start_thread(self) -> Result<OutputThread> {
        let (ended, end) = pipe()?;
        let (job, task) = (self.job.clone(), self.task.clone());
        let thread = std::thread::spawn(move || or_exit(self.print(&ended)));
        Ok(OutputThread { job, task, thread, end })
    }

    fn print(self, ended: &OwnedFd) -> io::Result<()> {
        let mut printer =
            Printer::new(LineFormat { json: true, ..LineFormat::default() }, OutputStreams::new(false));
        let number = printer.add_task(&self.job, &self.task, false, 0);
        let mut streams = self.pipes.map(Some);
        let mut begun = [Vec::new(), Vec::new()];
        loop {
            let ended = sleep(&streams, ended)?;
            let mut over = ended;
            for ((stream, kind), begun) in
                streams.iter_mut().zip([Stream::Stdout, Stream::Stderr]).zip(&mut begun)
            {
                let state = stream.as_ref().map_or(PipeState::Closed, |pipe| read(pipe, begun));
                over &= state != PipeState::More;
                let last = state == PipeState::Closed || ended && state == PipeState::Empty;
                let time = humantime::format_rfc3339_micros(SystemTime::now()).to_string();
                let mut line = |text: &[u8], ends| {
                    printer
                        .line(number, &Line { time: &time, stream: kind, ends, attempt: self.attempt, text })
                };
                let whole = begun.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
                let lines: Vec<u8> = begun.drain(..whole).collect();
                for text in lines.split_inclusive(|byte| *byte == b'\n') {
                    line(&text[..text.len() - 1], true)?;
                }
                if last && !begun.is_empty() || begun.len() >= MAX_LINE_BYTES {
                    line(&std::mem::take(begun), last)?;
                }
                if state == PipeState::Closed {
                    *stream = None;
                }
            }
            printer.flush()?;
            if over {
                return Ok(());
            }
        }
    }
}

impl OutputThread {
    /// Shows the rest, and how the program ended.
    pub(super) fn finish(self, exit_code: u8) {
        drop(self.end);
        let _ = self.thread.join();
        let end = json!({ "job": self.job, "task": self.task, "exit_code": exit_code });
        terminal::print(&format!("{end}\n"));
    }
}

/// Waits until there is something to read, or the program has ended; returns true if it has ended.
fn sleep(streams: &[Option<OwnedFd>; 2], ended: &OwnedFd) -> io::Result<bool> {
    let pipes: Vec<_> =
        std::iter::once(ended).chain(streams.iter().flatten()).map(|pipe| pipe.as_fd()).collect();
    Ok(readable::wait(&pipes, None)?[0])
}

/// The remaining data in a pipe.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PipeState {
    /// There may be more.
    More,
    /// Nothing now.
    Empty,
    /// End of file.
    Closed,
}

/// Reads what is available, up to the maximum length of a line.
fn read(pipe: &OwnedFd, into: &mut Vec<u8>) -> PipeState {
    let mut piece = [0; 8192];
    while into.len() < MAX_LINE_BYTES {
        match rustix::io::read(pipe, &mut piece) {
            Ok(0) => return PipeState::Closed,
            Ok(count) => into.extend_from_slice(&piece[..count]),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return PipeState::Empty,
            Err(_) => return PipeState::Closed,
        }
    }
    PipeState::More
}

fn pipe() -> Result<(OwnedFd, OwnedFd)> {
    pipe_with(PipeFlags::CLOEXEC).map_err(pipe_error)
}

fn pipe_error(errno: Errno) -> Error {
    Error::system("make a pipe for the program's output", errno)
}
