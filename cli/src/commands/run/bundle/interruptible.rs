//! Work before there is a container, which a signal cuts short: the unpacking of an archive.

use std::path::Path;
use std::time::Duration;

use jobc_sys::error::Result;
use jobc_sys::signals::{Signal, Signals};

use crate::interruptible::{self, end_by};

/// Does the work in a thread. A signal that ends a program ends this one meanwhile, and `folder`, where the work is
/// done, goes with it.
pub(super) fn run<T: Send>(signals: &Signals, folder: &Path, work: impl FnOnce() -> T + Send) -> Result<T> {
    interruptible::run(signals, work, |signal| give_up(folder, signal))
}

/// Removes a folder that a thread still works in, and ends the program as the signal would have.
fn give_up(folder: &Path, signal: Signal) {
    // What the thread makes meanwhile keeps a folder from being empty; without its folder it soon stops.
    for _ in 0..200 {
        if std::fs::remove_dir_all(folder).is_ok() || !folder.exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    end_by(signal)
}
