//! How the stages of a build wait for each other, and for a turn on the host.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Permits for a number of concurrent workers.
#[derive(Debug)]
pub(super) struct Permits {
    free: Mutex<usize>,
    released: Condvar,
}

/// A turn. Dropping it lets the next one work.
pub(super) struct Permit<'a>(&'a Permits);

impl Permits {
    /// The number of permits.
    pub(super) fn new(count: usize) -> Self {
        Self { free: Mutex::new(count), released: Condvar::new() }
    }

    /// Waits for a turn.
    pub(super) fn acquire(&self) -> Permit<'_> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free =
            self.released.wait_while(free, |free| *free == 0).unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        Permit(self)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.released.notify_one();
    }
}

/// A result that may come.
#[derive(Clone, Debug)]
enum SlotState<T> {
    Pending,
    Ready(T),
    /// There will be none.
    Failed,
}

/// Results by index; `None` for one that will not come.
#[derive(Debug)]
pub(super) struct Results<T> {
    all: Mutex<Vec<SlotState<T>>>,
    changed: Condvar,
}

impl<T: Clone> Results<T> {
    /// Slots for this many results.
    pub(super) fn new(count: usize) -> Self {
        Self { all: Mutex::new((0..count).map(|_| SlotState::Pending).collect()), changed: Condvar::new() }
    }

    /// Gives one.
    pub(super) fn set(&self, index: usize, result: Option<T>) {
        self.all()[index] = result.map_or(SlotState::Failed, SlotState::Ready);
        self.changed.notify_all();
    }

    /// Wakes all waiting threads to check their conditions.
    pub(super) fn wake(&self) {
        let _all = self.all();
        self.changed.notify_all();
    }

    /// One that may be there.
    pub(super) fn get(&self, index: usize) -> Option<T> {
        ready_value(&self.all(), index)
    }

    /// Waits for one; `None` if it will not come, or `ended` becomes true first.
    pub(super) fn wait(&self, index: usize, ended: &AtomicBool) -> Option<T> {
        let waits = |all: &mut Vec<SlotState<T>>| {
            matches!(all.get(index), Some(SlotState::Pending)) && !ended.load(Ordering::Relaxed)
        };
        let all = self.changed.wait_while(self.all(), waits).unwrap_or_else(PoisonError::into_inner);
        ready_value(&all, index)
    }

    fn all(&self) -> MutexGuard<'_, Vec<SlotState<T>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn ready_value<T: Clone>(all: &[SlotState<T>], index: usize) -> Option<T> {
    match all.get(index) {
        Some(SlotState::Ready(result)) => Some(result.clone()),
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
        let first = permits.acquire();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| drop(permits.acquire()));
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(!second.is_finished());
            drop(first);
            second.join().unwrap();
        });
    }
}
