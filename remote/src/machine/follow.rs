//! Commands of `jobc` that run while a job runs: their output line by line.

use std::io::{BufRead as _, BufReader, Read as _};
use std::ops::ControlFlow;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use jobc_sys::error::{Error, Kind, Result};

use super::answers::error_of;
use super::program::Connection;
use super::runs;
use crate::host::{Output, Stream, Streams};
use crate::place::{JobProgress, JobSummary};

/// After this time without a line, the caller learns that nothing happened.
const IDLE_TIMEOUT: Duration = Duration::from_secs(1);
/// Number of reconnects while waiting for a job, and the delay before each.
const MAX_RECONNECTIONS: u32 = 30;
const RECONNECTION_DELAY: Duration = Duration::from_secs(2);
/// Maximum number of bytes read of a command's errors.
const MAX_ERROR: u64 = 64 << 10;

/// Runs `jobc` with words, and passes each line of its output on; none when nothing happened for a while.
pub(super) fn lines(
    connection: &Connection,
    words: &[&str],
    output: &mut dyn FnMut(Option<&[u8]>) -> ControlFlow<()>,
) -> Result<()> {
    let streams = Streams { stdin: Stream::Null, stdout: Stream::Pipe, stderr: Stream::Pipe };
    let mut running = connection.start(words, streams, false)?;
    let (Some(stdout), Some(stderr)) = (running.stdout.take(), running.stderr.take()) else {
        return Err(Error::new(Kind::System, "the command has no output"));
    };
    let errors = std::thread::spawn(move || {
        let mut text = Vec::new();
        let mut stderr = stderr.take(MAX_ERROR);
        let _ = stderr.read_to_end(&mut text);
        let _ = std::io::copy(&mut stderr.into_inner(), &mut std::io::sink());
        text
    });
    // A slow reader here slows the other side down.
    let (sender, receiver) = std::sync::mpsc::sync_channel::<Vec<u8>>(256);
    std::thread::spawn(move || {
        let mut reader = BufReader::new(stdout);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
            if line.last() == Some(&b'\n') {
                line.pop();
            }
            if sender.send(std::mem::take(&mut line)).is_err() {
                return;
            }
        }
    });
    loop {
        let next = match receiver.recv_timeout(IDLE_TIMEOUT) {
            Ok(line) => output(Some(&line)),
            Err(RecvTimeoutError::Timeout) => output(None),
            Err(RecvTimeoutError::Disconnected) => break,
        };
        if next.is_break() {
            return Ok(());
        }
    }
    let status = running.wait()?;
    let stderr = errors.join().unwrap_or_default();
    if status == 0 {
        Ok(())
    } else {
        Err(error_of(connection.name(), &Output { status, stdout: vec![], stderr }))
    }
}

/// Waits for the end of a job. Reconnects if the connection is lost.
pub(super) fn wait(
    connection: &Connection,
    name: &str,
    progress: JobProgress<'_>,
) -> Result<Option<JobSummary>> {
    let mut lost = 0;
    loop {
        let found = runs::find(connection, name);
        let entry = match found {
            Ok(entry) => entry,
            Err(error) if error.kind == Kind::System && lost > 0 && lost < MAX_RECONNECTIONS => {
                lost += 1;
                std::thread::sleep(RECONNECTION_DELAY);
                continue;
            }
            Err(error) => return Err(error),
        };
        let summary = entry.summary();
        if progress(&summary).is_break() {
            return Ok(None);
        }
        if summary.state.is_final() {
            return Ok(Some(summary));
        }
        let Some(id) = entry.id() else { return Err(runs::not_started(name)) };
        match wait_once(connection, id) {
            Ok(true) => lost = 0,
            Ok(false) => std::thread::sleep(RECONNECTION_DELAY),
            Err(error) if lost >= MAX_RECONNECTIONS => return Err(error),
            Err(_) => {
                lost += 1;
                std::thread::sleep(RECONNECTION_DELAY);
            }
        }
    }
}

/// Waits by one command; the exit code of `jobc wait` is that of the job. Whether it took note of the end.
fn wait_once(connection: &Connection, id: &str) -> Result<bool> {
    let streams = Streams { stdin: Stream::Null, stdout: Stream::Pipe, stderr: Stream::Null };
    let mut running = connection.start(&["wait", id, "--format", "json"], streams, false)?;
    let (sender, ended) = channel();
    if let Some(mut stdout) = running.stdout.take() {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = stdout.read_to_end(&mut text);
            let _ = sender.send(text);
        });
    }
    running.wait()?;
    Ok(ended.recv().is_ok_and(|text| !text.is_empty()))
}
