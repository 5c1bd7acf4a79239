//! Resources of a process that starts in the middle of another: a stack, and no signals.
#![allow(unsafe_code)]

use std::ffi::c_void;

use linux_raw_sys::general;

use super::raw;
use crate::error::{Error, Result};

/// A stack for a process that shares our memory, with a page below it that faults.
#[derive(Debug)]
pub struct Stack {
    mapping: usize,
    /// Its lowest address.
    pub base: usize,
    /// Its size in bytes.
    pub size: usize,
}

impl Stack {
    const GUARD: usize = 4096 * 16;
    const SIZE: usize = 256 * 1024;

    /// Maps a stack.
    pub fn new() -> Result<Self> {
        use rustix::mm::{MapFlags, MprotectFlags, ProtFlags};
        let length = Self::GUARD + Self::SIZE;
        let machine = |errno| Error::system("map a stack for the new process", errno);
        // SAFETY: a new mapping at an address of the kernel's choice overlaps no other mapping.
        let mapping = unsafe {
            rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        }
        .map_err(machine)?;
        // SAFETY: the range is the lower part of the mapping just made.
        unsafe { rustix::mm::mprotect(mapping, Self::GUARD, MprotectFlags::empty()) }.map_err(machine)?;
        Ok(Self { mapping: mapping as usize, base: mapping as usize + Self::GUARD, size: Self::SIZE })
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and who ran on it has left the memory.
        let _ = unsafe { rustix::mm::munmap(self.mapping as *mut c_void, Self::GUARD + Self::SIZE) };
    }
}

/// All signals blocked on this thread, so that none is delivered to a child on a foreign stack.
pub struct SignalBlocker(u64);

impl SignalBlocker {
    /// Blocks them until this is dropped.
    #[allow(clippy::new_without_default)] // it changes the thread
    pub fn new() -> Self {
        let (all, mut before) = (u64::MAX, 0_u64);
        let mask = [
            general::SIG_BLOCK as usize,
            std::ptr::from_ref(&all) as usize,
            std::ptr::from_mut(&mut before) as usize,
            size_of::<u64>(),
            0,
            0,
        ];
        // SAFETY: both point to eight bytes on this stack (rt_sigprocmask(2)).
        let _ = unsafe { raw::syscall(general::__NR_rt_sigprocmask, mask) };
        Self(before)
    }
}

impl Drop for SignalBlocker {
    fn drop(&mut self) {
        let mask =
            [general::SIG_SETMASK as usize, std::ptr::from_ref(&self.0) as usize, 0, size_of::<u64>(), 0, 0];
        // SAFETY: as above.
        let _ = unsafe { raw::syscall(general::__NR_rt_sigprocmask, mask) };
    }
}
