//! Streams of lines: what a command prints line by line, as server-sent events.
//!
//! What is followed has one process, whatever the number of followers ([`source`]). Its lines go into a ring of a bounded
//! size, at the pace of the fastest follower; a slower one misses lines and is told how many. Followers of a log first get
//! what is on disk, each from a process of its own ([`backlog`]), and then join the ring at the line where that ended.

pub(crate) mod backlog;
pub(crate) mod event;
mod follower;
pub(crate) mod source;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::own::Own;
use crate::problem::Problem;

pub(crate) use event::Format;
pub(crate) use follower::Follower;
use source::Source;

/// What is followed at a time; each has a process.
const MAX_SOURCES: usize = 128;

/// What is followed, by its command line.
#[derive(Default)]
pub(crate) struct Followed(Mutex<BTreeMap<Vec<String>, Weak<Source>>>);

impl Followed {
    /// The lines of a command, which is started unless it runs already. `key` is what tells it from others.
    ///
    /// # Errors
    /// Too much is followed, or it cannot be started.
    pub(crate) fn open(&self, key: Vec<String>, own: &Own, format: Format) -> Result<Arc<Source>, Problem> {
        let mut sources = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(source) = sources.get(&key).and_then(Weak::upgrade).filter(|source| !source.has_ended()) {
            return Ok(source);
        }
        sources.retain(|_, source| source.strong_count() > 0);
        if sources.len() >= MAX_SOURCES {
            return Err(Problem::too_many("too many jobs are followed at a time"));
        }
        let source = Source::start(own, format)?;
        sources.insert(key, Arc::downgrade(&source));
        Ok(source)
    }

    /// Ends all processes.
    pub(crate) fn end(&self) {
        let sources = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        sources.into_values().filter_map(|source| source.upgrade()).for_each(|source| source.end());
    }
}
