//! Work before there is a container, which a signal cuts short: the unpacking of an archive.

use std::path::Path;
use std::time::Duration;

use jobc_runtime::error::{Error, Result};
use jobc_runtime::process::Exit;
use jobc_runtime::signals::{Signal, Signals};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

/// Does the work in a thread. A signal that ends a program ends this one meanwhile, and `folder`, where the work is
/// done, goes with it.
pub(super) fn run<T: Send>(signals: &Signals, folder: &Path, work: impl FnOnce() -> T + Send) -> Result<T> {
    let (done, working) =
        pipe_with(PipeFlags::CLOEXEC).map_err(|errno| Error::machine("make a pipe", errno))?;
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            let result = work();
            drop(working);
            result
        });
        loop {
            let mut polled = [PollFd::new(signals, PollFlags::IN), PollFd::new(&done, PollFlags::IN)];
            match poll(&mut polled, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(Error::machine("wait for a root to be unpacked", errno)),
            }
            if !polled[1].revents().is_empty() {
                return thread.join().map_err(|panic| std::panic::resume_unwind(panic));
            }
            if let Some(signal) = signals.next().filter(|signal| signal.ends_by_default()) {
                give_up(folder, signal);
            }
        }
    })
}

/// Removes a folder that a thread still works in, and ends the program as the signal would have.
fn give_up(folder: &Path, signal: Signal) -> ! {
    // What the thread makes meanwhile keeps a folder from being empty; without its folder it soon stops.
    for _ in 0..200 {
        if std::fs::remove_dir_all(folder).is_ok() || !folder.exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    std::process::exit(Exit::Signal(signal.number()).code().into())
}
