//! Processes on this host: started with pipes, and run to their end within a time.

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use jobc_sys::error::{Error, Kind, Result, describe_io};
use jobc_sys::signals;

use super::marks::Filter;
use super::output::{Input, Output};

/// The maximum output of a command, on each stream.
const MAX_OUTPUT: usize = 64 << 20;
/// How long a stream may stay open after the process: ssh's background connection once kept standard error open.
const STREAM_TIMEOUT: Duration = Duration::from_millis(500);
/// How often the end of a process is looked for.
const INTERVAL: Duration = Duration::from_millis(20);

/// The command of words, on this host.
pub(super) fn local(words: &[&str]) -> Result<Command> {
    let (program, arguments) =
        words.split_first().ok_or_else(|| Error::new(Kind::Config, "the command has no words"))?;
    let mut command = Command::new(program);
    command.args(arguments);
    Ok(command)
}

/// Starts a command. No signal is blocked in it, even if this thread blocks some.
pub(super) fn spawn(command: &mut Command) -> Result<Child> {
    let program = command.get_program().to_string_lossy().into_owned();
    let child = signals::with_none_blocked(|| command.spawn())?;
    child.map_err(|error| {
        let kind = if error.kind() == std::io::ErrorKind::NotFound {
            Kind::ProgramNotFound
        } else {
            Kind::NotExecutable
        };
        Error::new(kind, format!("cannot execute `{program}`: {}", describe_io(&error)))
    })
}

/// Runs a command of this host to its end.
pub(super) fn run(mut command: Command, stdin: Option<Input<'_>>, timeout: Duration) -> Result<Output> {
    let ended = collect(&mut command, stdin, [None, None], timeout)?;
    if ended.is_late {
        let program = command.get_program().to_string_lossy().into_owned();
        return Err(late(&format!("`{program}`"), timeout));
    }
    Ok(Output { status: code_of(ended.status), stdout: ended.stdout, stderr: ended.stderr })
}

/// The error of a command that takes too long.
pub(super) fn late(what: &str, timeout: Duration) -> Error {
    Error::new(Kind::System, format!("{what} timed out after {}", humantime::format_duration(timeout)))
}

/// The exit code of a process; 128 and the number of the signal that ended it.
pub(super) fn code_of(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(255)
}

/// A process that has ended.
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
    /// The filters after all output.
    pub(super) filters: [Option<Filter>; 2],
    /// Whether it was killed, because it took too long.
    pub(super) is_late: bool,
}

/// Bytes of a stream; none at its end.
type Chunk = (usize, Vec<u8>);

/// Runs a process to its end; its streams pass through the filters.
pub(super) fn collect(
    command: &mut Command,
    stdin: Option<Input<'_>>,
    filters: [Option<Filter>; 2],
    timeout: Duration,
) -> Result<Ended> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = spawn(command)?;
    let (sender, chunks) = channel();
    if let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) {
        read(0, stdout, &sender);
        read(1, stderr, &sender);
    }
    let (moved, progress) = channel();
    drop(sender);
    let pipe = child.stdin.take();
    std::thread::scope(|scope| {
        let mut writer = None;
        let mut kept = None;
        match (stdin, pipe) {
            (Some(write), Some(pipe)) => {
                writer = Some(scope.spawn(move || {
                    let mut pipe = Counted { pipe, moved };
                    let result = write(&mut pipe);
                    result.and_then(|()| pipe.flush())
                }));
            }
            // A command without input keeps its standard input open: its end tells the other side that the client has
            // gone.
            (_, pipe) => kept = pipe,
        }
        let ended = watch(&mut child, &chunks, &progress, filters, timeout);
        if ended.is_err() {
            let _ = child.kill();
            let _ = child.wait();
        }
        drop(kept);
        let written =
            writer.map(|writer| writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        let ended = ended?;
        match written {
            // A command that ends before it has read everything says why.
            Some(Err(error)) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                Err(Error::new(Kind::System, format!("cannot send: {}", describe_io(&error))))
            }
            _ => Ok(ended),
        }
    })
}

/// A pipe that tells when bytes move.
struct Counted<W> {
    pipe: W,
    moved: Sender<()>,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = self.pipe.write(bytes)?;
        let _ = self.moved.send(());
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.pipe.flush()
    }
}

/// Reads a stream in a thread, which ends with the stream.
fn read(number: usize, mut stream: impl Read + Send + 'static, sender: &Sender<Chunk>) {
    let sender = sender.clone();
    std::thread::spawn(move || {
        let mut buffer = vec![0; 64 << 10];
        loop {
            let count = match stream.read(&mut buffer) {
                Ok(count) => count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) => 0,
            };
            if sender.send((number, buffer[..count].to_vec())).is_err() || count == 0 {
                return;
            }
        }
    });
}

/// Takes the output until the process and its streams have ended.
fn watch(
    child: &mut Child,
    chunks: &Receiver<Chunk>,
    progress: &Receiver<()>,
    mut filters: [Option<Filter>; 2],
    timeout: Duration,
) -> Result<Ended> {
    let mut found = [vec![], vec![]];
    let mut is_open = [true, true];
    let mut deadline = Instant::now() + timeout;
    let mut exited: Option<(ExitStatus, Instant)> = None;
    let mut is_late = false;
    loop {
        match chunks.recv_timeout(INTERVAL) {
            Ok((number, bytes)) => {
                deadline = Instant::now() + timeout;
                is_open[number] = !bytes.is_empty();
                match &mut filters[number] {
                    Some(filter) if bytes.is_empty() => filter.finish(&mut found[number]),
                    Some(filter) => filter.feed(&bytes, &mut found[number]),
                    None => found[number].extend_from_slice(&bytes),
                }
                if found[number].len() > MAX_OUTPUT {
                    return Err(Error::new(Kind::System, "the command prints more than 64 MiB"));
                }
                if let Some((_, since)) = &mut exited {
                    *since = Instant::now();
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                is_open = [false, false];
                if exited.is_none() {
                    std::thread::sleep(INTERVAL / 10);
                }
            }
        }
        if progress.try_iter().count() > 0 {
            deadline = Instant::now() + timeout;
        }
        if exited.is_none() {
            let status = child
                .try_wait()
                .map_err(|error| Error::new(Kind::System, "cannot wait for a process").because(error))?;
            exited = status.map(|status| (status, Instant::now()));
        }
        if let Some((status, since)) = exited {
            let has_all = |number: usize| {
                !is_open[number] || filters[number].as_ref().is_some_and(|filter| filter.status().is_some())
            };
            if has_all(0) && has_all(1) || since.elapsed() > STREAM_TIMEOUT {
                let [stdout, stderr] = found;
                return Ok(Ended { status, stdout, stderr, filters, is_late });
            }
        } else if Instant::now() > deadline && !is_late {
            is_late = true;
            let _ = child.kill();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, input: Option<&str>, timeout: Duration) -> Result<Output> {
        let command = local(&["sh", "-c", script]).unwrap();
        let write = input.map(|text| move |pipe: &mut dyn Write| pipe.write_all(text.as_bytes()));
        run(command, write.as_ref().map(|write| write as Input<'_>), timeout)
    }

    const LONG: Duration = Duration::from_mins(1);

    #[test]
    fn output_and_exit_code_are_read() {
        let output = sh("cat; echo e >&2; exit 3", Some("text"), LONG).unwrap();
        assert_eq!(output, Output { status: 3, stdout: b"text".to_vec(), stderr: b"e\n".to_vec() });
        assert_eq!(sh("kill -9 $$", None, LONG).unwrap().status, 137);
        let error = run(Command::new("/nonexistent"), None, LONG).unwrap_err();
        assert_eq!(error.message(), "cannot execute `/nonexistent`: no such file or directory (ENOENT)");
        assert_eq!(local(&[]).unwrap_err().message(), "the command has no words");
    }

    #[test]
    fn a_command_that_takes_too_long_is_killed() {
        let start = Instant::now();
        let error = sh("exec sleep 60", None, Duration::from_millis(200)).unwrap_err();
        assert_eq!(error.message(), "`sh` timed out after 200ms");
        assert!(start.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn a_stream_that_stays_open_is_not_waited_for() {
        let start = Instant::now();
        let output = sh("sleep 30 >&2 & echo done", None, LONG).unwrap();
        assert_eq!(output.stdout, b"done\n");
        assert!(start.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn unread_input_is_not_an_error() {
        let text = "x".repeat(1 << 20);
        assert_eq!(sh("exit 4", Some(&text), LONG).unwrap().status, 4);
        assert_eq!(sh("cat", Some(&text), LONG).unwrap().stdout.len(), 1 << 20);
    }
}
