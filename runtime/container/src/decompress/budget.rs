//! Memory that threads share: who needs some waits until there is enough.

use std::sync::{Condvar, Mutex, PoisonError};

/// So many bytes for all at a time.
#[derive(Debug)]
pub(super) struct Budget {
    whole: u64,
    left: Mutex<u64>,
    given_back: Condvar,
}

impl Budget {
    pub(super) const fn new(whole: u64) -> Self {
        Self { whole, left: Mutex::new(whole), given_back: Condvar::new() }
    }

    /// All that there is.
    pub(super) fn whole(&self) -> u64 {
        self.whole
    }

    /// Takes a part, at most all of it; waits until others have given back what is missing.
    ///
    /// Whoever has a part already is to give that back before, or two could wait for each other.
    pub(super) fn take(&self, bytes: u64) -> Share<'_> {
        let bytes = bytes.min(self.whole);
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let enough = self.given_back.wait_while(left, |left| *left < bytes);
        *enough.unwrap_or_else(PoisonError::into_inner) -= bytes;
        Share { of: self, bytes }
    }
}

/// A part of a budget, which goes back when this goes.
#[derive(Debug)]
pub(super) struct Share<'a> {
    of: &'a Budget,
    bytes: u64,
}

impl Share<'_> {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        *self.of.left.lock().unwrap_or_else(PoisonError::into_inner) += self.bytes;
        self.of.given_back.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn no_more_is_out_than_there_is() {
        let (budget, out, most) = (Budget::new(10), AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for asked in [1, 4, 6, 10, 99] {
                let (budget, out, most) = (&budget, &out, &most);
                scope.spawn(move || {
                    for _ in 0..200 {
                        let share = budget.take(asked);
                        assert_eq!(share.bytes(), asked.min(10));
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
