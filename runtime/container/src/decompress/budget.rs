//! Memory that threads share: who needs some waits until there is enough.

use std::sync::{Condvar, Mutex, PoisonError};

/// Bytes that all zstd frames and xz blocks together may look back at, however many are read at a time. 8 MiB are usual;
/// zstd's level 22 and `--long` have 128 MiB, `xz -9` has 64 MiB.
pub(super) static WINDOWS: MemoryBudget = MemoryBudget::new(64 << 20);

/// A number of bytes shared by all readers.
#[derive(Debug)]
pub(super) struct MemoryBudget {
    total: u64,
    available: Mutex<u64>,
    released: Condvar,
}

impl MemoryBudget {
    pub(super) const fn new(whole: u64) -> Self {
        Self { total: whole, available: Mutex::new(whole), released: Condvar::new() }
    }

    /// The total.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Takes a part, at most the total; waits until others have returned enough.
    ///
    /// A caller that already has a part must return it first, or two could wait for each other.
    pub(super) fn take(&self, bytes: u64) -> Share<'_> {
        let bytes = bytes.min(self.total);
        let left = self.available.lock().unwrap_or_else(PoisonError::into_inner);
        let enough = self.released.wait_while(left, |left| *left < bytes);
        *enough.unwrap_or_else(PoisonError::into_inner) -= bytes;
        Share { budget: self, bytes }
    }
}

/// A part of a budget, which goes back when this goes.
#[derive(Debug)]
pub(super) struct Share<'a> {
    budget: &'a MemoryBudget,
    bytes: u64,
}

impl Share<'_> {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        *self.budget.available.lock().unwrap_or_else(PoisonError::into_inner) += self.bytes;
        self.budget.released.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn budget_is_never_exceeded() {
        let (budget, out, most) = (MemoryBudget::new(10), AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for requested in [1, 4, 6, 10, 99] {
                let (budget, out, most) = (&budget, &out, &most);
                scope.spawn(move || {
                    for _ in 0..200 {
                        let share = budget.take(requested);
                        assert_eq!(share.bytes(), requested.min(10));
                        most.fetch_max(
                            out.fetch_add(share.bytes(), Ordering::SeqCst) + share.bytes(),
                            Ordering::SeqCst,
                        );
                        std::thread::yield_now();
                        out.fetch_sub(share.bytes(), Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!(most.into_inner(), 10);
        assert_eq!(budget.take(10).bytes(), 10, "all came back");
    }
}
