//! A server that answers 429 says when to come again. All threads of a command wait then: the server limits the user.

use jobc_sys::parallel::lock;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A server that asks for a longer pause is not waited for.
const MAX_PAUSE: Duration = Duration::from_mins(2);
/// A request that is turned away for so long fails.
const MAX_BUSY: Duration = Duration::from_mins(10);
/// Interval between two remarks about it, and the wait from which on there is one.
const NOTICE_INTERVAL: Duration = Duration::from_secs(10);
/// The pause after which a message tells the user why nothing happens.
const NOTABLE_PAUSE: Duration = Duration::from_secs(2);

/// Until when the server wants no requests.
#[derive(Default)]
pub(crate) struct Busy {
    state: Mutex<Pause>,
}

#[derive(Default)]
struct Pause {
    until: Option<Instant>,
    noticed: Option<Instant>,
}

impl Busy {
    /// Waits until the server wants requests again.
    pub(crate) fn wait(&self) {
        loop {
            let until = lock(&self.state).until;
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            match left.filter(|left| !left.is_zero()) {
                Some(left) => std::thread::sleep(left),
                None => return,
            }
        }
    }

    /// Takes note of a pause that the server asks for, after a request was turned away for `elapsed`. Returns false if
    /// it is too long to wait for.
    pub(crate) fn pause(&self, asked: Duration, elapsed: Duration, notice: &dyn Fn(&str)) -> bool {
        if asked > MAX_PAUSE || elapsed > MAX_BUSY {
            return false;
        }
        let now = Instant::now();
        let mut state = lock(&self.state);
        state.until = state.until.max(Some(now + asked));
        let is_notable = asked >= NOTABLE_PAUSE || elapsed >= NOTICE_INTERVAL;
        let is_due = state.noticed.is_none_or(|at| now.duration_since(at) >= NOTICE_INTERVAL);
        if is_notable && is_due {
            state.noticed = Some(now);
            drop(state);
            notice(&format!("the cluster answered 429; trying again in {} s", asked.as_secs()));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn all_threads_wait_and_one_remark_is_made() {
        let remarks = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&remarks);
        let notice = move |_: &str| {
            counted.fetch_add(1, Ordering::Relaxed);
        };
        let busy = Busy::default();
        let begun = Instant::now();
        busy.wait();
        assert!(begun.elapsed() < Duration::from_millis(100));
        assert!(busy.pause(Duration::from_millis(200), Duration::ZERO, &notice));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| busy.wait());
            }
        });
        assert!(begun.elapsed() >= Duration::from_millis(200));
        assert_eq!(remarks.load(Ordering::Relaxed), 0, "a short pause is not worth a remark");
        for _ in 0..4 {
            assert!(busy.pause(Duration::from_secs(3), Duration::ZERO, &notice));
        }
        assert_eq!(remarks.load(Ordering::Relaxed), 1);
        assert!(!busy.pause(MAX_PAUSE * 2, Duration::ZERO, &notice));
        assert!(!busy.pause(Duration::from_secs(1), MAX_BUSY * 2, &notice));
    }
}
