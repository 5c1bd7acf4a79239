//! The program's allocator: the C library's, or mimalloc for what compiles.
//!
//! A job of 10,000 roles is some ten million small values, which mimalloc makes in three quarters of the time. A container's
//! start makes a few hundred, and would pay for mimalloc's own beginning and end with a tenth of its time. Which of the
//! two it is, `main` says once it has looked at the first word of the command line; what is allocated before then stands
//! in a small static region and is never given back, so no block is ever freed by another allocator than its own.
#![allow(unsafe_code)] // `GlobalAlloc` is an unsafe trait

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use mimalloc::MiMalloc;

/// How many bytes can be allocated before the choice; a longer command line chooses the C library's.
const EARLY: usize = 8 * 1024;

/// Who allocates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Choice {
    /// The C library.
    System = 1,
    /// The allocator for many small values.
    Compiler = 2,
}

/// An allocator that is chosen once.
#[derive(Debug)]
pub(crate) struct Allocator {
    /// A [`Choice`], or 0 before it.
    chosen: AtomicU8,
    used: AtomicUsize,
    early: Early,
}

/// The region of before the choice. It is handed out from its beginning on, each part once.
#[repr(align(16))]
#[derive(Debug)]
struct Early(UnsafeCell<[u8; EARLY]>);

// SAFETY: nobody reads or writes it but through pointers to parts, each handed out once.
unsafe impl Sync for Early {}

impl Allocator {
    /// An allocator before its choice.
    pub(crate) const fn new() -> Self {
        Self {
            chosen: AtomicU8::new(0),
            used: AtomicUsize::new(0),
            early: Early(UnsafeCell::new([0; EARLY])),
        }
    }

    /// Chooses who allocates from now on. The first choice stays.
    pub(crate) fn choose(&self, choice: Choice) {
        let _ = self.chosen.compare_exchange(0, choice as u8, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// A part of the early region, all zero; nothing, and a choice, where it is full.
    fn take(&self, layout: Layout) -> Option<*mut u8> {
        let base = self.early.0.get().cast::<u8>();
        let place = |used: usize| {
            let skip = base.wrapping_add(used).align_offset(layout.align());
            let begin = used.checked_add(skip)?;
            Some((begin, begin.checked_add(layout.size()).filter(|end| *end <= EARLY)?))
        };
        let taken = self
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| place(used).map(|(_, end)| end));
        let Some((begin, _)) = taken.ok().and_then(place) else {
            self.choose(Choice::System);
            return None;
        };
        Some(base.wrapping_add(begin))
    }

    /// Whether a block stands in the early region.
    fn is_early(&self, block: *mut u8) -> bool {
        (block as usize).wrapping_sub(self.early.0.get() as usize) < EARLY
    }

    fn choice(&self) -> Option<Choice> {
        match self.chosen.load(Ordering::Relaxed) {
            0 => None,
            1 => Some(Choice::System),
            _ => Some(Choice::Compiler),
        }
    }
}

// SAFETY: each call goes to the allocator that was chosen, with what the caller promises of it. A block of the early region
// is told by its address, is handed out once, and is given back to nobody; every other block is of the one choice.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if self.choice().is_none()
            && let Some(block) = self.take(layout)
        {
            return block;
        }
        match self.choice() {
            // SAFETY: the caller's promise.
            Some(Choice::Compiler) => unsafe { MiMalloc.alloc(layout) },
            // SAFETY: the caller's promise.
            _ => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if self.choice().is_none()
            && let Some(block) = self.take(layout)
        {
            return block;
        }
        match self.choice() {
            // SAFETY: the caller's promise.
            Some(Choice::Compiler) => unsafe { MiMalloc.alloc_zeroed(layout) },
            // SAFETY: the caller's promise.
            _ => unsafe { System.alloc_zeroed(layout) },
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match self.choice() {
            _ if self.is_early(block) => {}
            // SAFETY: a block that is not early was made after the choice, by what was chosen.
            Some(Choice::Compiler) => unsafe { MiMalloc.dealloc(block, layout) },
            // SAFETY: as above.
            _ => unsafe { System.dealloc(block, layout) },
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if self.is_early(block) {
            // SAFETY: the caller promises a size that is not 0 and does not overflow when rounded up to the alignment.
            let new = unsafe { self.alloc(Layout::from_size_align_unchecked(size, layout.align())) };
            if !new.is_null() {
                // SAFETY: the old block has as many bytes, the new one too, and they do not overlap.
                unsafe { new.copy_from_nonoverlapping(block, layout.size().min(size)) };
            }
            return new;
        }
        match self.choice() {
            // SAFETY: as in `dealloc`.
            Some(Choice::Compiler) => unsafe { MiMalloc.realloc(block, layout, size) },
            // SAFETY: as in `dealloc`.
            _ => unsafe { System.realloc(block, layout, size) },
        }
    }
}

#[cfg(test)]
mod tests;
