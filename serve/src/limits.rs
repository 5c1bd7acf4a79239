//! How much callers may ask at a time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::problem::Problem;

/// The largest body of a request that is read into memory.
pub(crate) const MAX_BODY_BYTES: usize = 4 << 20;
/// How long a request may take to arrive, apart from uploads.
pub(crate) const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the header of a request may take to arrive.
pub(crate) const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// Streams at a time, of all callers.
const MAX_STREAMS: usize = 512;
/// Streams at a time of one caller.
const MAX_STREAMS_EACH: usize = 256;
/// Commands that run at a time; others wait.
const MAX_COMMANDS: usize = 8;
/// Commands that wait.
const MAX_WAITING: usize = 64;
/// Requests that a caller may send at once.
const BURST: f64 = 200.0;
/// Requests a second after that.
const RATE: f64 = 50.0;
/// Callers whose rate is known.
const MAX_CALLERS: usize = 1000;

/// Requests that a caller may still send, and when that was so.
struct Bucket {
    left: f64,
    at: Instant,
}

/// The limits of a server.
pub(crate) struct Limits {
    streams: Arc<Semaphore>,
    commands: Arc<Semaphore>,
    waiting: Semaphore,
    callers: Mutex<BTreeMap<String, Bucket>>,
    streams_each: Arc<Mutex<BTreeMap<String, usize>>>,
}

/// A stream that counts until this is dropped.
pub(crate) struct Stream {
    _permit: OwnedSemaphorePermit,
    caller: String,
    each: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            streams: Arc::new(Semaphore::new(MAX_STREAMS)),
            commands: Arc::new(Semaphore::new(MAX_COMMANDS)),
            waiting: Semaphore::new(MAX_WAITING),
            callers: Mutex::default(),
            streams_each: Arc::default(),
        }
    }
}

impl Limits {
    /// Counts a request.
    ///
    /// # Errors
    /// The caller has sent too many.
    pub(crate) fn request(&self, caller: &str) -> Result<(), Problem> {
        let now = Instant::now();
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if callers.len() >= MAX_CALLERS {
            callers.retain(|_, bucket| now.duration_since(bucket.at) < Duration::from_secs(10));
        }
        let bucket = callers.entry(caller.to_owned()).or_insert(Bucket { left: BURST, at: now });
        bucket.left = now.duration_since(bucket.at).as_secs_f64().mul_add(RATE, bucket.left).min(BURST);
        bucket.at = now;
        if bucket.left < 1.0 {
            return Err(Problem::too_many("too many requests; try again in a second"));
        }
        bucket.left -= 1.0;
        Ok(())
    }

    /// Counts a stream.
    ///
    /// # Errors
    /// There are too many.
    pub(crate) fn stream(&self, caller: &str) -> Result<Stream, Problem> {
        let refused = || Problem::too_many("too many streams at a time; close one first");
        let permit = Arc::clone(&self.streams).try_acquire_owned().map_err(|_| refused())?;
        let mut each = self.streams_each.lock().unwrap_or_else(PoisonError::into_inner);
        let count = each.entry(caller.to_owned()).or_default();
        if *count >= MAX_STREAMS_EACH {
            return Err(refused());
        }
        *count += 1;
        Ok(Stream { _permit: permit, caller: caller.to_owned(), each: Arc::clone(&self.streams_each) })
    }

    /// Waits until a command may run.
    ///
    /// # Errors
    /// Too many wait.
    pub(crate) async fn command(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let Ok(_waiting) = self.waiting.try_acquire() else {
            return Err(Problem::too_many("the server is busy; try again in a second"));
        };
        let permit = Arc::clone(&self.commands).acquire_owned().await;
        permit.map_err(|_| Problem::of_host("the server is about to end"))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let mut each = self.each.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = each.get_mut(&self.caller) {
            *count -= 1;
            if *count == 0 {
                each.remove(&self.caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_that_sends_too_much_waits_and_others_do_not() {
        let limits = Limits::default();
        let sent = (0..500).filter(|_| limits.request("eve").is_ok()).count();
        assert!((200..260).contains(&sent), "{sent}");
        assert!(limits.request("ada").is_ok());
        std::thread::sleep(Duration::from_millis(100));
        assert!(limits.request("eve").is_ok());
    }

    #[test]
    fn streams_of_a_caller_and_of_all_are_limited() {
        let limits = Limits::default();
        let mut held: Vec<_> = std::iter::from_fn(|| limits.stream("eve").ok()).collect();
        assert_eq!(held.len(), MAX_STREAMS_EACH);
        held.extend(std::iter::from_fn(|| limits.stream("ada").ok()));
        assert_eq!(held.len(), MAX_STREAMS);
        assert!(limits.stream("bob").is_err());
        drop(held);
        assert!(limits.stream("eve").is_ok());
    }
}
