//! What a command prints from its beginning to its end, for one reader, at the pace of that.

use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jobc_process::Running;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::event::Format;
use super::source::{Chunk, each_chunk};
use crate::own::Own;
use crate::problem::Problem;

/// Processes that begin at a time; others wait. One with a slow reader only waits for that, and counts as begun.
const MAX_STARTING: usize = 16;
/// How long a reader may take nothing.
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);
/// How often a reader that is slow is looked after.
const POLL: Duration = Duration::from_millis(20);

/// The processes of all readers.
#[derive(Clone)]
pub(crate) struct Backlogs(Arc<Semaphore>);

/// The output of a command.
pub(crate) struct Backlog {
    chunks: mpsc::Receiver<Chunk>,
    running: Running,
    /// Until the first chunk.
    starting: Option<OwnedSemaphorePermit>,
}

impl Default for Backlogs {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_STARTING)))
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
            each_chunk(output, format, |chunk| send(&sender, chunk));
            process.kill();
            process.wait();
        });
        Ok(Backlog { chunks, running, starting: Some(slot) })
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
        let chunk = self.chunks.recv().await;
        self.starting = None;
        chunk
    }
}

impl Drop for Backlog {
    fn drop(&mut self) {
        self.running.kill();
    }
}
