//! Threads for blocking work of a followed pod: a connection, or a request about it.

use std::io::{PipeReader, PipeWriter, Read as _, Write as _, pipe};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::parallel::lock;

use super::client::Client;
use super::log_stream::LogStream;
use super::pods::Pod;
use super::status::ApiError;

/// The number of connections that are opened at the same time.
const MAX_WORKERS: usize = 4;
/// They only send requests.
const STACK_SIZE: usize = 512 << 10;

/// Threads that wait.
pub(super) struct Workers {
    client: Arc<Client>,
    jobs: Sender<(u64, Work)>,
    queue: Arc<Mutex<Receiver<(u64, Work)>>>,
    done: Receiver<(u64, Outcome)>,
    results: Sender<(u64, Outcome)>,
    woken: PipeReader,
    wake: PipeWriter,
    count: usize,
    outstanding: usize,
}

/// Work for a pod.
pub(super) enum Work {
    /// Opens the stream of this path.
    Open(String),
    /// Reads the object of this path.
    Ask(String),
}

/// The result.
pub(super) enum Outcome {
    Opened(std::result::Result<Box<LogStream>, ApiError>),
    Asked(std::result::Result<Option<FoundPod>, ApiError>),
}

/// The request about a pod.
pub(super) struct FoundPod {
    pub(super) uid: String,
    pub(super) has_ended: bool,
}

impl From<Pod> for FoundPod {
    fn from(pod: Pod) -> Self {
        Self { has_ended: pod.has_ended(), uid: pod.metadata.uid }
    }
}

impl Workers {
    pub(super) fn new(client: Arc<Client>) -> Result<Self> {
        let (woken, wake) =
            pipe().map_err(|error| Error::new(Kind::System, format!("cannot create a pipe: {error}")))?;
        let (jobs, queue) = channel();
        let (results, done) = channel();
        let queue = Arc::new(Mutex::new(queue));
        Ok(Self { client, jobs, queue, done, results, woken, wake, count: 0, outstanding: 0 })
    }

    /// Passes work to a thread; its result has the same number.
    pub(super) fn begin(&mut self, number: u64, work: Work) -> Result<()> {
        self.outstanding += 1;
        if self.count < MAX_WORKERS.min(self.outstanding) {
            self.start()?;
        }
        // The receiver lives as long as `self`.
        let _ = self.jobs.send((number, work));
        Ok(())
    }

    fn start(&mut self) -> Result<()> {
        let failed =
            |error: std::io::Error| Error::new(Kind::System, format!("cannot create a thread: {error}"));
        let (client, queue, results) =
            (Arc::clone(&self.client), Arc::clone(&self.queue), self.results.clone());
        let mut wake = self.wake.try_clone().map_err(failed)?;
        let work = move || loop {
            let next = lock(&queue).recv();
            let Ok((number, work)) = next else { return };
            let outcome = match work {
                Work::Open(path) => Outcome::Opened(LogStream::open(&client, &path).map(Box::new)),
                Work::Ask(path) => {
                    Outcome::Asked(client.find::<Pod>(&path).map(|pod| pod.map(FoundPod::from)))
                }
            };
            if results.send((number, outcome)).is_err() || wake.write_all(&[0]).is_err() {
                return;
            }
        };
        std::thread::Builder::new()
            .name("log".to_owned())
            .stack_size(STACK_SIZE)
            .spawn(work)
            .map_err(failed)?;
        self.count += 1;
        Ok(())
    }

    /// The outcomes since the last call, after [`Self::as_fd`] was readable.
    pub(super) fn outcomes(&mut self) -> Vec<(u64, Outcome)> {
        // No more than available: each result has written one byte.
        let _ = self.woken.read(&mut [0; 256]);
        let outcomes: Vec<_> = self.done.try_iter().collect();
        self.outstanding -= outcomes.len();
        outcomes
    }
}

impl AsFd for Workers {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.woken.as_fd()
    }
}
