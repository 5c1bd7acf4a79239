//! One reader of a stream of events: first what is on disk, then what comes.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures_util::stream::unfold;
use tokio::sync::watch;

use super::backlog::Backlog;
use super::event::{self, Format, Id, task_of, time_of};
use super::source::{Chunk, Lines, Next, Source};
use crate::limits::Stream;
use crate::reply::typed;

/// How often an idle stream shows that it lives.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// One reader of a stream of events.
pub(crate) struct Follower {
    backlog: Option<Backlog>,
    source: Option<Arc<Source>>,
    changes: Option<watch::Receiver<u64>>,
    /// The number of the next chunk of the source.
    next: u64,
    /// How many lines of the source came before that.
    seen: Option<u64>,
    /// The last event that the reader has got before this stream.
    after: Option<Id>,
    /// The times of the last lines of the backlog, by task: the source may have them too.
    last: BTreeMap<String, String>,
    /// The latest of them.
    latest: String,
    has_ended: bool,
    /// Lines that come first.
    known: Option<Bytes>,
    _stream: Stream,
}

impl Follower {
    /// A reader that got the events up to `after` before.
    pub(crate) fn new(stream: Stream, after: Option<Id>) -> Self {
        Self {
            backlog: None,
            source: None,
            changes: None,
            next: 0,
            seen: None,
            after,
            last: BTreeMap::new(),
            latest: String::new(),
            has_ended: false,
            known: None,
            _stream: stream,
        }
    }

    /// Lines that are known come first.
    pub(crate) fn with_lines(mut self, lines: &str, format: Format) -> Self {
        self.known = Lines::new(format).chunk(lines.as_bytes()).map(|chunk| chunk.events);
        self
    }

    /// What is on disk comes first.
    pub(crate) fn with_backlog(mut self, backlog: Backlog) -> Self {
        self.backlog = Some(backlog);
        self
    }

    /// Lines of a source come then, from the chunk of a number on.
    pub(crate) fn with_source(mut self, source: Arc<Source>, from: u64) -> Self {
        self.changes = Some(source.changes());
        self.next = from;
        self.source = Some(source);
        self
    }

    /// The stream as an answer.
    pub(crate) fn into_response(self) -> Response {
        let events = unfold(self, |mut follower| async {
            let bytes = follower.events().await?;
            Some((Ok::<_, Infallible>(bytes), follower))
        });
        typed("text/event-stream", Body::from_stream(events))
    }

    /// The next events; none after the end.
    async fn events(&mut self) -> Option<Bytes> {
        if let Some(known) = self.known.take() {
            return Some(known);
        }
        while let Some(backlog) = &mut self.backlog {
            match backlog.next().await {
                Some(chunk) => {
                    let events = self.of_backlog(&chunk);
                    if !events.is_empty() {
                        return Some(events);
                    }
                }
                None => self.backlog = None,
            }
        }
        loop {
            if self.has_ended {
                return None;
            }
            let Some(source) = &self.source else {
                self.has_ended = true;
                return Some(Bytes::from_static(event::END.as_bytes()));
            };
            match source.next(self.next, self.seen) {
                Next::Chunk(number, chunk, dropped) => {
                    self.next = number + 1;
                    self.seen = Some(chunk.first_line + chunk.lines);
                    let events = self.of_source(&chunk);
                    if dropped > 0 {
                        return Some([event::gap(dropped).as_bytes(), &events].concat().into());
                    }
                    if !events.is_empty() {
                        return Some(events);
                    }
                    // A source that is behind the disk has much that the follower has already. Others go on meanwhile.
                    tokio::task::yield_now().await;
                }
                Next::End => {
                    self.has_ended = true;
                    return Some(Bytes::from_static(event::END.as_bytes()));
                }
                Next::Wait => {
                    let Some(changes) = &mut self.changes else { return None };
                    match tokio::time::timeout(KEEP_ALIVE, changes.changed()).await {
                        Ok(Ok(())) => {}
                        Ok(Err(_)) => return None,
                        Err(_) => return Some(Bytes::from_static(event::KEEP_ALIVE.as_bytes())),
                    }
                }
            }
        }
    }

    /// The events of the backlog that are new.
    fn of_backlog(&mut self, chunk: &Chunk) -> Bytes {
        let mut kept = vec![];
        for event in event::each(&chunk.events) {
            let line = event::line_of(event);
            let id = event.strip_prefix(b"id: ").and_then(|rest| rest.split(|&byte| byte == b'\n').next());
            let id = id.and_then(|id| Id::parse(std::str::from_utf8(id).ok()?));
            let (time, task) = (time_of(line), task_of(line));
            if time > self.latest.as_str() {
                time.clone_into(&mut self.latest);
            }
            match self.last.get_mut(task) {
                Some(last) => time.clone_into(last),
                None => drop(self.last.insert(task.to_owned(), time.to_owned())),
            }
            let is_seen = |(id, after): (&Id, &Id)| {
                id.time < after.time || id.time == after.time && id.number <= after.number
            };
            if !id.as_ref().zip(self.after.as_ref()).is_some_and(is_seen) {
                kept.extend_from_slice(event);
            }
        }
        kept.into()
    }

    /// The events of the source that the backlog, or the reader, did not have.
    fn of_source(&self, chunk: &Chunk) -> Bytes {
        let is_number = |after: &&Id| after.time.is_empty();
        if let Some(after) =
            self.after.as_ref().filter(is_number).filter(|after| chunk.first_line <= after.number)
        {
            let seen = usize::try_from(after.number + 1 - chunk.first_line).unwrap_or(usize::MAX);
            return event::each(&chunk.events).skip(seen).collect::<Vec<_>>().concat().into();
        }
        if chunk.since > self.latest {
            return chunk.events.clone();
        }
        let is_old =
            |(task, until): (&String, &String)| self.last.get(task).is_some_and(|last| until <= last);
        if chunk.until.iter().all(is_old) {
            return Bytes::new();
        }
        let is_new = |event: &&[u8]| {
            let line = event::line_of(event);
            self.last.get(task_of(line)).is_none_or(|last| time_of(line) > last.as_str())
        };
        event::each(&chunk.events).filter(is_new).collect::<Vec<_>>().concat().into()
    }
}
