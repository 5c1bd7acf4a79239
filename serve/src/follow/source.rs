//! A process whose lines several followers share.

use std::collections::{BTreeMap, VecDeque};
use std::io::Read;
use std::process::Stdio;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use jobc_process::Running;
use tokio::sync::watch;

use super::event::{Events, Format, task_of, time_of};
use crate::own::Own;
use crate::problem::Problem;

/// The events that are kept for followers.
const RING_BYTES: usize = 8 << 20;
/// What is read at a time.
const CHUNK_BYTES: usize = 64 << 10;
/// The longest line; the rest of one that is longer is left out.
const MAX_LINE_BYTES: usize = 1 << 20;

/// Events that were made together.
#[derive(Clone)]
pub(crate) struct Chunk {
    pub(crate) events: Bytes,
    /// The number of the first line.
    pub(crate) first_line: u64,
    pub(crate) lines: u64,
    /// The earliest time of a line.
    pub(crate) since: String,
    /// The latest time of a line of each task.
    pub(crate) until: Arc<BTreeMap<String, String>>,
}

#[derive(Default)]
struct Ring {
    chunks: VecDeque<Chunk>,
    bytes: usize,
    /// The number of the first chunk.
    first: u64,
    /// The number of the chunk that the fastest follower wants next.
    fastest: u64,
    has_ended: bool,
}

/// A process whose lines several followers share. It ends with the last of them.
pub(crate) struct Source {
    ring: Mutex<Ring>,
    /// Notified when a follower takes a chunk.
    taken: Condvar,
    /// Changes with each chunk, and at the end.
    changed: watch::Sender<u64>,
    running: Running,
}

/// What a follower gets for the chunk that it wants.
pub(crate) enum Next {
    /// The chunk, by its number, and how many lines were dropped before it.
    Chunk(u64, Chunk, u64),
    /// It is not there yet.
    Wait,
    /// The output has ended.
    End,
}

/// Reads the output of a process to its end, as long as each chunk of events is taken.
pub(super) fn each_chunk(output: Option<impl Read>, format: Format, mut take: impl FnMut(Chunk) -> bool) {
    let Some(mut output) = output else { return };
    let (mut lines, mut buffer) = (Lines::new(format), vec![0; CHUNK_BYTES]);
    loop {
        let read = output.read(&mut buffer).unwrap_or(0);
        let is_wanted = lines.chunk(&buffer[..read]).is_none_or(&mut take);
        if read == 0 || !is_wanted {
            return;
        }
    }
}

impl Source {
    pub(super) fn start(own: &Own, format: Format) -> Result<Arc<Self>, Problem> {
        let mut process = own.command().process()?;
        let mut child = process.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let output = child.stdout.take();
        let running = Running::new(child);
        let source = Arc::new(Self {
            ring: Mutex::default(),
            taken: Condvar::new(),
            changed: watch::channel(0).0,
            running: running.clone(),
        });
        let weak = Arc::downgrade(&source);
        std::thread::spawn(move || {
            // Until the last follower has left.
            each_chunk(output, format, |chunk| weak.upgrade().is_some_and(|source| source.push(chunk)));
            running.kill();
            running.wait();
            if let Some(source) = weak.upgrade() {
                source.ring().has_ended = true;
                source.changed.send_modify(|version| *version += 1);
            }
        });
        Ok(source)
    }

    /// Whether its process has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.ring().has_ended
    }

    /// Ends its process.
    pub(super) fn end(&self) {
        self.running.kill();
    }

    /// The number of the next chunk, and of the first one that is kept.
    pub(crate) fn position(&self) -> (u64, u64) {
        let ring = self.ring();
        (ring.first + ring.chunks.len() as u64, ring.first)
    }

    /// Tells when there is more.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// The chunk of a number, or the first one after it that is kept; `seen` lines came before.
    pub(crate) fn next(&self, number: u64, seen: Option<u64>) -> Next {
        let mut ring = self.ring();
        let at = number.max(ring.first);
        let index = usize::try_from(at - ring.first).unwrap_or(usize::MAX);
        let found = ring.chunks.get(index).cloned();
        ring.fastest = ring.fastest.max(at + u64::from(found.is_some()));
        let has_ended = ring.has_ended;
        drop(ring);
        self.taken.notify_all();
        match found {
            Some(chunk) => {
                let dropped = seen.map_or(0, |seen| chunk.first_line.saturating_sub(seen));
                Next::Chunk(at, chunk, dropped)
            }
            None if has_ended => Next::End,
            None => Next::Wait,
        }
    }

    /// Adds a chunk once the fastest follower has what it replaces. Returns whether anybody follows.
    fn push(self: Arc<Self>, chunk: Chunk) -> bool {
        let mut ring = self.ring();
        while ring.bytes + chunk.events.len() > RING_BYTES && ring.fastest <= ring.first {
            if Arc::strong_count(&self) == 1 {
                return false;
            }
            let waited = self.taken.wait_timeout(ring, Duration::from_millis(200));
            ring = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        while ring.bytes + chunk.events.len() > RING_BYTES {
            let Some(oldest) = ring.chunks.pop_front() else { break };
            ring.bytes -= oldest.events.len();
            ring.first += 1;
        }
        ring.bytes += chunk.events.len();
        ring.chunks.push_back(chunk);
        drop(ring);
        self.changed.send_modify(|version| *version += 1);
        true
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.running.kill();
    }
}

/// Lines of a byte stream, as chunks of events.
pub(super) struct Lines {
    events: Events,
    line: Vec<u8>,
    count: u64,
}

impl Lines {
    pub(super) fn new(format: Format) -> Self {
        Self { events: Events::new(format), line: vec![], count: 0 }
    }

    /// The lines that end in these bytes; none if none does.
    pub(super) fn chunk(&mut self, bytes: &[u8]) -> Option<Chunk> {
        let (mut out, mut since, mut until) = (vec![], None::<String>, BTreeMap::<String, String>::new());
        let first_line = self.count;
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            let room = MAX_LINE_BYTES.saturating_sub(self.line.len());
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            if part.ends_with(b"\n") {
                let time = time_of(&self.line);
                if since.as_deref().is_none_or(|since| time < since) {
                    since = Some(time.to_owned());
                }
                let task = task_of(&self.line);
                match until.get_mut(task) {
                    Some(until) if time > until.as_str() => time.clone_into(until),
                    Some(_) => {}
                    None => drop(until.insert(task.to_owned(), time.to_owned())),
                }
                self.events.add(&self.line, &mut out);
                self.line.clear();
                self.count += 1;
            }
        }
        let since = since?;
        // It is kept for long, and what it has grown by is not counted.
        out.shrink_to_fit();
        let until = Arc::new(until);
        Some(Chunk { events: out.into(), first_line, lines: self.count - first_line, since, until })
    }
}
