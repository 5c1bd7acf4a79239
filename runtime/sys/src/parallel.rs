//! Work on many items at the same time.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Does something with each item, in up to `threads` threads; the first error ends all, and is returned.
///
/// Items are begun in their order. `work` gets a flag that is set when another item failed, so that it can stop. With
/// one thread or one item no thread is created.
pub fn for_each<T: Sync, E: Send>(
    items: &[T],
    threads: usize,
    work: impl Fn(&T, &AtomicBool) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let (next, stopped, failed) = (AtomicUsize::new(0), AtomicBool::new(false), Mutex::new(None));
    let one = || {
        while !stopped.load(Ordering::Relaxed)
            && let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed))
        {
            if let Err(error) = work(item, &stopped) {
                // Those that stop because of it fail later.
                lock(&failed).get_or_insert(error);
                stopped.store(true, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(items.len()) {
            scope.spawn(one);
        }
        one();
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// What a mutex guards, even after a thread failed that had locked it.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_done_until_something_fails() {
        let items: Vec<usize> = (0..100).collect();
        for threads in [0, 1, 4, 200] {
            let done = AtomicUsize::new(0);
            let all = for_each(&items, threads, |_, _| {
                done.fetch_add(1, Ordering::Relaxed);
                Ok::<_, &str>(())
            });
            assert_eq!((all, done.into_inner()), (Ok(()), 100));
        }
        let failed = for_each(&items, 4, |item, stopped| {
            if *item == 2 {
                return Err("two");
            }
            while !stopped.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            Err("stopped")
        });
        assert_eq!(failed, Err("two"));
    }

    #[test]
    fn one_thread_works_in_order_and_ends_with_the_first_error() {
        let seen = Mutex::new(vec![]);
        let failed = for_each(&[1, 2, 3], 1, |item, _| {
            seen.lock().unwrap().push(*item);
            if *item == 2 { Err(*item) } else { Ok(()) }
        });
        assert_eq!((failed, seen.into_inner().unwrap()), (Err(2), vec![1, 2]));
    }
}
