//! How often a request is tried, and the waits in between.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

/// The maximum number of tries without progress.
const MAX_TRIES: u32 = 6;
/// The wait after the first failure; each further one is twice as long.
const FIRST_DELAY: Duration = Duration::from_millis(250);
/// A registry that asks for a longer pause than this is not waited for.
pub(crate) const MAX_RETRY_AFTER: Duration = Duration::from_mins(2);

/// The failures of one request in a row.
#[derive(Debug, Default)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Counts a failure; returns how long to wait before the next attempt, or `None` for no further attempt.
    ///
    /// `retry_after` is the wait that the server requests (`Retry-After`); it is observed in full, or there is no retry.
    pub fn failed(&mut self, retry_after: Option<Duration>) -> Option<Duration> {
        self.failures += 1;
        if self.failures >= MAX_TRIES || retry_after.is_some_and(|retry_after| retry_after > MAX_RETRY_AFTER)
        {
            return None;
        }
        let own = FIRST_DELAY * 2u32.pow(self.failures - 1);
        // Up to a quarter more, so that clients that were turned away together do not come back together.
        let part = RandomState::new().hash_one(self.failures) % 256;
        let spread = own.mul_f64(0.25 * f64::from(u8::try_from(part).unwrap_or_default()) / 255.0);
        Some(own.max(retry_after.unwrap_or_default()) + spread)
    }

    /// Something came: the next failure is the first again.
    pub fn progressed(&mut self) {
        self.failures = 0;
    }
}

/// The seconds of `Retry-After` (RFC 9110, section 10.2.3). Its other form, a date, is ignored: it would be compared
/// with a local clock that may be wrong.
pub fn parse_retry_after(header: &str) -> Option<Duration> {
    header.trim().parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_maximum_number_of_tries() {
        let mut backoff = Backoff::default();
        for expected in [250, 500, 1000, 2000, 4000] {
            let wait = backoff.failed(None).unwrap().as_millis();
            assert!((expected..=expected * 5 / 4).contains(&wait), "{wait} ms instead of {expected}");
        }
        assert_eq!(backoff.failed(None), None);
        backoff.progressed();
        assert!(backoff.failed(None).unwrap() < FIRST_DELAY * 2);
    }

    #[test]
    fn what_the_registry_asks_for_is_waited_in_full() {
        let asked_for = parse_retry_after(" 3 ");
        assert!(Backoff::default().failed(asked_for).unwrap() >= Duration::from_secs(3));
        assert_eq!(Backoff::default().failed(Some(MAX_RETRY_AFTER + Duration::from_secs(1))), None);
        assert_eq!(parse_retry_after("Fri, 31 Dec 2027 23:59:59 GMT"), None);
    }
}
