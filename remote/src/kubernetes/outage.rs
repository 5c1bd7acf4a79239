//! Failures of a server that has answered before: a restart takes a minute, and until it has read its rules again, it
//! answers 403. What follows a job waits for so long.

use std::time::{Duration, Instant};

use super::client::Client;
use super::status::ApiError;

/// How long a server may fail.
pub(crate) const MAX_OUTAGE: Duration = Duration::from_mins(2);
/// The pause before the next attempt.
pub(crate) const PAUSE: Duration = Duration::from_secs(2);

/// The failures since the last answer.
#[derive(Debug, Default)]
pub(crate) struct Outage {
    since: Option<Instant>,
}

impl Outage {
    /// Notes an answer.
    pub(crate) fn end(&mut self) {
        self.since = None;
    }

    /// Notes a failure. Returns whether it may still pass, and whether it is the first.
    pub(crate) fn fail(&mut self) -> (bool, bool) {
        let is_first = self.since.is_none();
        let since = *self.since.get_or_insert_with(Instant::now);
        (since.elapsed() < MAX_OUTAGE, is_first)
    }

    /// Waits after a failure, which the user is told once. Returns whether to try again.
    pub(crate) fn wait(&mut self, client: &Client, why: &str) -> bool {
        let (may_pass, is_first) = self.fail();
        if may_pass {
            if is_first {
                client.notice(&notice(why));
            }
            std::thread::sleep(PAUSE);
        }
        may_pass
    }
}

/// What the user is told.
pub(crate) fn notice(why: &str) -> String {
    format!("{why}; trying again for {} min", MAX_OUTAGE.as_secs() / 60)
}

/// Whether an error of a request that was answered before may pass.
pub(crate) fn may_pass(error: &ApiError) -> bool {
    match error {
        ApiError::Connection(_) => true,
        ApiError::Status(status) => matches!(status.code, 403 | 429 | 500..),
        ApiError::Local(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::status::Status;
    use super::*;

    #[test]
    fn what_a_restart_causes_may_pass() {
        let status = |code| ApiError::Status(Box::new(Status { code, ..Status::default() }));
        for (error, expected) in [
            (status(403), true),
            (status(500), true),
            (status(503), true),
            (status(401), false),
            (status(404), false),
            (status(410), false),
            (ApiError::Connection("connection refused".to_owned()), true),
        ] {
            assert_eq!(may_pass(&error), expected, "{error:?}");
        }
    }

    #[test]
    fn an_outage_is_said_once() {
        let mut outage = Outage::default();
        assert_eq!(outage.fail(), (true, true));
        assert_eq!(outage.fail(), (true, false));
        outage.end();
        assert_eq!(outage.fail(), (true, true));
        outage.since = Instant::now().checked_sub(MAX_OUTAGE);
        assert!(!outage.fail().0, "it is bounded");
    }
}
