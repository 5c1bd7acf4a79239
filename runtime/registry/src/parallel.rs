//! Several blobs at once.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use jobc_sys::error::Result;

/// So many blobs are on their way at once: one connection seldom fills a line, and registries refuse clients with many.
const MAX_CONCURRENT: usize = 4;

/// Does something with each item, several at once; the first error ends all, and is returned.
///
/// `work` gets a flag that is set when another item failed, so that it can stop.
pub(crate) fn for_each<T: Sync>(
    items: &[T],
    work: impl Fn(&T, &AtomicBool) -> Result<()> + Sync,
) -> Result<()> {
    let (next, stopped, failed) = (AtomicUsize::new(0), AtomicBool::new(false), Mutex::new(None));
    let one = || {
        while !stopped.load(Ordering::Relaxed)
            && let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed))
        {
            if let Err(error) = work(item, &stopped) {
                // Those that stop because of it fail later.
                failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                stopped.store(true, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..MAX_CONCURRENT.min(items.len()) {
            scope.spawn(one);
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use jobc_sys::error::{Error, Kind};

    use super::*;

    #[test]
    fn everything_is_done_until_something_fails() {
        let items: Vec<usize> = (0..100).collect();
        let done = AtomicUsize::new(0);
        for_each(&items, |_, _| {
            done.fetch_add(1, Ordering::Relaxed);
            Ok(())
        })
        .unwrap();
        assert_eq!(done.into_inner(), 100);
        let failed = for_each(&items, |item, stopped| {
            if *item == 2 {
                return Err(Error::new(Kind::System, "two"));
            }
            while !stopped.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            Err(Error::new(Kind::State, "stopped"))
        });
        assert_eq!(failed.unwrap_err().message, "two");
    }
}
