//! What a command prints from its beginning to its end, for one reader, at the pace of that.

use std::io::Read as _;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jobc_process::Running;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::event::Format;
use super::source::{Chunk, Lines};
use crate::own::Own;
use crate::problem::Problem;

/// Processes at a time; other readers wait.
const MAX_AT_A_TIME: usize = 16;
/// How long a reader may take nothing.
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);
/// How often a reader that is slow is looked after.
const POLL: Duration = Duration::from_millis(20);
/// What is read at a time.
const CHUNK_BYTES: usize = 64 << 10;

/// The processes of all readers.
#[derive(Clone)]
pub(crate) struct Backlogs(Arc<Semaphore>);

/// The output of a command.
pub(crate) struct Backlog {
    chunks: mpsc::Receiver<Chunk>,
    running: Running,
    _slot: OwnedSemaphorePermit,
}

impl Default for Backlogs {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_AT_A_TIME)))
    }
}

impl Backlogs {
    /// Starts a command.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) async fn open(&self, own: &Own, format: Format) -> Result<Backlog, Problem> {
        let slot = Arc::clone(&self.0).acquire_owned().await;
        let slot = slot.map_err(|_| Problem::of_host("the server is about to end"))?;
        let mut process = own.command().process()?;
        let mut child = process.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let output = child.stdout.take();
        let running = Running::new(child);
        let (sender, chunks) = mpsc::channel(2);
        let process = running.clone();
        std::thread::spawn(move || {
            let mut lines = Lines::new(format);
            let mut buffer = vec![0; CHUNK_BYTES];
            if let Some(mut output) = output {
                loop {
                    let read = output.read(&mut buffer).unwrap_or(0);
                    let is_wanted = lines.chunk(&buffer[..read]).is_none_or(|chunk| send(&sender, chunk));
                    if read == 0 || !is_wanted {
                        break;
                    }
                }
            }
            process.kill();
            process.wait();
        });
        Ok(Backlog { chunks, running, _slot: slot })
    }
}

/// Waits until the reader takes a chunk; returns false if it does not.
fn send(sender: &mpsc::Sender<Chunk>, chunk: Chunk) -> bool {
    let deadline = Instant::now() + IDLE_TIMEOUT;
    let mut chunk = chunk;
    loop {
        match sender.try_send(chunk) {
            Ok(()) => return true,
            Err(mpsc::error::TrySendError::Full(back)) if Instant::now() < deadline => chunk = back,
            Err(_) => return false,
        }
        std::thread::sleep(POLL);
    }
}

impl Backlog {
    /// The next events; none after the last.
    pub(crate) async fn next(&mut self) -> Option<Chunk> {
        self.chunks.recv().await
    }
}

impl Drop for Backlog {
    fn drop(&mut self) {
        self.running.kill();
    }
}
