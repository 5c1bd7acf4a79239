//! Commands whose streams are used while they run.

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use jobc_sys::error::{Error, Kind, Result};
use rustix::pipe::{PipeFlags, pipe_with};

use super::marks::{Filter, Mark};
use super::problems;
use super::process::{code_of, spawn};

/// How long standard error may stay open after the command.
const STREAM_TIMEOUT: Duration = Duration::from_millis(500);

/// Where the streams of a command lead.
#[derive(Debug, Default)]
pub struct Streams {
    /// Its input.
    pub stdin: Stream,
    /// Its standard output; with a terminal, all of its output.
    pub stdout: Stream,
    /// Its standard error.
    pub stderr: Stream,
}

impl Streams {
    /// The streams of a command that reads and writes open files, or reads nothing.
    pub fn of_files(stdin: Option<OwnedFd>, stdout: OwnedFd, stderr: OwnedFd) -> Self {
        let stdin = stdin.map_or(Stream::Null, Stream::File);
        Self { stdin, stdout: Stream::File(stdout), stderr: Stream::File(stderr) }
    }

    /// The streams of a command that passes on a connection.
    pub(crate) fn of_socket(socket: TcpStream, stderr: Stream) -> Result<Self> {
        let copy = socket.try_clone();
        let copy =
            copy.map_err(|error| Error::new(Kind::System, "cannot pass on a connection").because(error))?;
        Ok(Self { stdin: Stream::File(socket.into()), stdout: Stream::File(copy.into()), stderr })
    }
}

/// Where a stream leads.
#[derive(Debug, Default)]
pub enum Stream {
    /// Nowhere: it reads nothing, or its output is discarded.
    #[default]
    Null,
    /// To this process; see [`Running`].
    Pipe,
    /// To an open file.
    File(OwnedFd),
}

/// A command that runs. It ends when this is dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    /// The command's input, if it was requested.
    pub stdin: Option<ChildStdin>,
    /// Its standard output, if that was asked for.
    pub stdout: Option<File>,
    /// Its standard error, if that was asked for.
    pub stderr: Option<File>,
    /// The open input of a command that reads nothing; its end has the other side end the command.
    kept: Option<ChildStdin>,
    connection: Option<Connection>,
}

/// The streams of a command on another host.
#[derive(Debug)]
struct Connection {
    host: String,
    filters: [Receiver<Filter>; 2],
}

impl Running {
    /// Starts a program of this host.
    pub(super) fn local(mut command: Command, streams: Streams) -> Result<Self> {
        let reads_nothing = matches!(streams.stdin, Stream::Null);
        command.stdin(if reads_nothing { Stdio::null() } else { stdio(streams.stdin) });
        command.stdout(stdio(streams.stdout)).stderr(stdio(streams.stderr));
        let mut child = spawn(&mut command)?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().map(|pipe| File::from(OwnedFd::from(pipe)));
        let stderr = child.stderr.take().map(|pipe| File::from(OwnedFd::from(pipe)));
        Ok(Self { child, stdin, stdout, stderr, kept: None, connection: None })
    }

    /// Starts ssh, which runs a command on a host between marks.
    pub(super) fn remote(mut command: Command, streams: Streams, mark: &Mark, host: &str) -> Result<Self> {
        let reads_nothing = matches!(streams.stdin, Stream::Null);
        command.stdin(if reads_nothing { Stdio::piped() } else { stdio(streams.stdin) });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = spawn(&mut command)?;
        // The command holds duplicates of the file descriptors that it passed on.
        drop(command);
        let stdin = child.stdin.take();
        let (stdout, out) = destination(streams.stdout)?;
        let (stderr, err) = destination(streams.stderr)?;
        let (from_out, from_err) = (child.stdout.take(), child.stderr.take());
        let filters = [pump(from_out, out, Filter::new(mark)), pump(from_err, err, Filter::new(mark))];
        let (stdin, kept) = if reads_nothing { (None, stdin) } else { (stdin, None) };
        let connection = Some(Connection { host: host.to_owned(), filters });
        Ok(Self { child, stdin, stdout, stderr, kept, connection })
    }

    /// Waits for the end of the command; returns its exit code, or 128 and the number of the signal that ended it.
    ///
    /// # Errors
    ///
    /// The host could not be reached, or the connection was lost.
    pub fn wait(&mut self) -> Result<i32> {
        let status = self
            .child
            .wait()
            .map_err(|error| Error::new(Kind::System, "cannot wait for a process").because(error))?;
        self.kept = None;
        let Some(Connection { host, filters: [stdout, stderr] }) = self.connection.take() else {
            return Ok(code_of(status));
        };
        // Standard output is passed on to its end, however slow its reader is.
        let stdout = stdout.recv().ok();
        let stderr = stderr.recv_timeout(STREAM_TIMEOUT).ok();
        if let Some(code) =
            stdout.as_ref().and_then(Filter::status).or(stderr.as_ref().and_then(Filter::status))
        {
            return Ok(code);
        }
        let has_begun = |filter: &Option<Filter>| filter.as_ref().is_some_and(Filter::has_begun);
        let begun = has_begun(&stdout) || has_begun(&stderr);
        if begun && status.code().is_some_and(|code| code != 255) {
            return Ok(code_of(status));
        }
        let noise = stderr.as_ref().map(Filter::noise).unwrap_or_default();
        Err(problems::explain(&host, begun, code_of(status), noise))
    }

    /// Whether the command has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }

    /// Ends the command, or the connection to it.
    pub fn stop(&mut self) {
        (self.stdin, self.kept) = (None, None);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

fn stdio(stream: Stream) -> Stdio {
    match stream {
        Stream::Null => Stdio::null(),
        Stream::Pipe => Stdio::piped(),
        Stream::File(file) => Stdio::from(file),
    }
}

/// The end of a stream for this process, and where the filtered output is written.
fn destination(stream: Stream) -> Result<(Option<File>, Option<File>)> {
    Ok(match stream {
        Stream::Null => (None, None),
        Stream::File(file) => (None, Some(File::from(file))),
        Stream::Pipe => {
            let (read, write) =
                pipe_with(PipeFlags::CLOEXEC).map_err(|errno| Error::system("make a pipe", errno))?;
            (Some(File::from(read)), Some(File::from(write)))
        }
    })
}

/// Passes a stream through its filter in a thread, which hands the filter over at the end.
fn pump(
    source: Option<impl Read + Send + 'static>,
    output: Option<File>,
    mut filter: Filter,
) -> Receiver<Filter> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut output = output;
        if let Some(mut source) = source {
            let mut buffer = vec![0; 64 << 10];
            let mut found = Vec::new();
            while filter.status().is_none() {
                match source.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(count) => filter.feed(&buffer[..count], &mut found),
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
                // A reader that went away ends the command at its next output.
                if output.as_mut().is_some_and(|output| output.write_all(&found).is_err()) {
                    break;
                }
                found.clear();
            }
            filter.finish(&mut found);
            if let Some(output) = &mut output {
                let _ = output.write_all(&found);
            }
        }
        drop(output);
        let _ = sender.send(filter);
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::process::local;
    use crate::host::script::{self, Reads};

    /// Runs the script of a command by the shell of this host, in place of ssh.
    fn start(words: &[&str], reads: Reads, stdin: Stream) -> Running {
        let mark = Mark::random();
        let script = format!("echo Welcome; echo Banner >&2; {}", script::of(words, &mark, reads));
        let streams = Streams { stdin, stdout: Stream::Pipe, stderr: Stream::Pipe };
        // As with ssh, the shell of the command is not the process that is killed here.
        let ssh = local(&["sh", "-c", r#"sh -c "$0"; exit $?"#, &script]).unwrap();
        Running::remote(ssh, streams, &mark, "box").unwrap()
    }

    fn text(file: Option<File>) -> String {
        let mut text = String::new();
        file.unwrap().read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn streams_are_the_commands() {
        let mut running = start(&["sh", "-c", "cat; echo e >&2; exit 255"], Reads::Input, Stream::Pipe);
        running.stdin.take().unwrap().write_all(b"typed").unwrap();
        assert_eq!(text(running.stdout.take()), "typed");
        assert_eq!(text(running.stderr.take()), "e\n");
        assert_eq!(running.wait().unwrap(), 255);
    }

    #[test]
    fn a_lost_connection_is_not_an_exit_code() {
        let mark = Mark::random();
        let mut command =
            local(&["sh", "-c", "echo 'ssh: connect: Connection refused' >&2; exit 255"]).unwrap();
        command.env_clear();
        let mut running = Running::remote(command, Streams::default(), &mark, "box").unwrap();
        let error = running.wait().unwrap_err();
        assert!(error.message().contains("connection refused"), "{error}");
    }

    #[test]
    fn a_command_that_is_dropped_ends() {
        let mut running = start(&["sh", "-c", "echo $$; exec sleep 60"], Reads::Nothing, Stream::Null);
        let mut line = String::new();
        let mut output = std::io::BufReader::new(running.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut output, &mut line).unwrap();
        drop(running);
        let path = format!("/proc/{}/stat", line.trim());
        let is_gone = || std::fs::read_to_string(&path).map_or(true, |status| status.contains(") Z"));
        assert!((0..500).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            is_gone()
        }));
    }
}
