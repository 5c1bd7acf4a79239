//! How the stages of a build wait for each other, and for a turn on the host.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// As many as may work at once.
#[derive(Debug)]
pub(super) struct Permits {
    free: Mutex<usize>,
    given_back: Condvar,
}

/// A turn. Dropping it lets the next one work.
pub(super) struct Permit<'a>(&'a Permits);

impl Permits {
    /// So many at once.
    pub(super) fn new(count: usize) -> Self {
        Self { free: Mutex::new(count), given_back: Condvar::new() }
    }

    /// Waits for a turn.
    pub(super) fn take(&self) -> Permit<'_> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free =
            self.given_back.wait_while(free, |free| *free == 0).unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        Permit(self)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.given_back.notify_one();
    }
}

/// A result that may come.
#[derive(Clone, Debug)]
enum Result<T> {
    Awaited,
    Came(T),
    /// There will be none.
    Failed,
}

/// Results that come one by one; nothing if there will be none.
#[derive(Debug)]
pub(super) struct Results<T> {
    all: Mutex<Vec<Result<T>>>,
    came: Condvar,
}

impl<T: Clone> Results<T> {
    /// Room for so many.
    pub(super) fn new(count: usize) -> Self {
        Self { all: Mutex::new((0..count).map(|_| Result::Awaited).collect()), came: Condvar::new() }
    }

    /// Gives one.
    pub(super) fn set(&self, index: usize, result: Option<T>) {
        self.all()[index] = result.map_or(Result::Failed, Result::Came);
        self.came.notify_all();
    }

    /// Wakes all waiting threads to check their conditions.
    pub(super) fn wake(&self) {
        let _all = self.all();
        self.came.notify_all();
    }

    /// One that may be there.
    pub(super) fn get(&self, index: usize) -> Option<T> {
        came(&self.all(), index)
    }

    /// Waits for one; nothing if it does not come, or `ended` has become true before.
    pub(super) fn wait(&self, index: usize, ended: &AtomicBool) -> Option<T> {
        let waits = |all: &mut Vec<Result<T>>| {
            matches!(all.get(index), Some(Result::Awaited)) && !ended.load(Ordering::Relaxed)
        };
        let all = self.came.wait_while(self.all(), waits).unwrap_or_else(PoisonError::into_inner);
        came(&all, index)
    }

    fn all(&self) -> MutexGuard<'_, Vec<Result<T>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn came<T: Clone>(all: &[Result<T>], index: usize) -> Option<T> {
    match all.get(index) {
        Some(Result::Came(result)) => Some(result.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_waits_is_woken_by_a_result_and_by_the_end() {
        let results = Results::new(2);
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let first = scope.spawn(|| results.wait(0, &ended));
            let second = scope.spawn(|| results.wait(1, &ended));
            results.set(0, Some("made"));
            assert_eq!(first.join().unwrap(), Some("made"));
            ended.store(true, Ordering::Relaxed);
            results.wake();
            assert_eq!(second.join().unwrap(), None);
        });
    }

    #[test]
    fn a_turn_comes_when_another_is_over() {
        let permits = Permits::new(1);
        let first = permits.take();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| drop(permits.take()));
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(!second.is_finished());
            drop(first);
            second.join().unwrap();
        });
    }
}
