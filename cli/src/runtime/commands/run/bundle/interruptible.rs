//! Work before the container exists, such as unpacking an archive, which a signal interrupts.

use std::path::Path;
use std::time::Duration;

use jobc_sys::error::Result;
use jobc_sys::signals::{Signal, Signals};

use crate::runtime::interruptible::{self, exit_by_signal};

/// Runs the work in a thread. A signal that ends a program ends this one and removes `directory`, where the work is
/// done.
pub(super) fn run<T: Send>(
    signals: &Signals,
    directory: &Path,
    work: impl FnOnce() -> T + Send,
) -> Result<T> {
    interruptible::run(signals, work, |signal| remove_and_exit(directory, signal))
}

/// Removes a directory that a thread still uses, and ends the program as the signal would have.
fn remove_and_exit(directory: &Path, signal: Signal) {
    // New files of the thread keep the directory from being empty; without its directory the thread soon stops.
    for _ in 0..200 {
        if std::fs::remove_dir_all(directory).is_ok() || !directory.exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    exit_by_signal(signal)
}
