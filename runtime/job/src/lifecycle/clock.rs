//! The time a job has had: the supervisor's clock without the time it was frozen.

use std::time::Duration;

/// How much time was spent frozen.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    now: Duration,
    lost: Duration,
    paused: Option<Duration>,
}

impl Clock {
    /// Takes the supervisor's time, and returns the job's.
    pub(crate) fn at(&mut self, now: Duration) -> Duration {
        self.now = now;
        self.paused.unwrap_or(now).saturating_sub(self.lost)
    }

    /// Stops it.
    pub(crate) fn pause(&mut self) {
        self.paused.get_or_insert(self.now);
    }

    /// Lets it go on.
    pub(crate) fn resume(&mut self) {
        if let Some(since) = self.paused.take() {
            self.lost += self.now.saturating_sub(since);
        }
    }

    /// Whether it is stopped.
    pub(crate) fn is_paused(&self) -> bool {
        self.paused.is_some()
    }

    /// When the supervisor's clock will show a time of the job; nothing while this clock is stopped.
    pub(crate) fn when(&self, time: Duration) -> Option<Duration> {
        (!self.is_paused()).then_some(time + self.lost)
    }
}
