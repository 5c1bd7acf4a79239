//! Runs work in a thread, while this one receives signals.

use jobc_container::process::Exit;
use jobc_sys::error::{Error, Result};
use jobc_sys::signals::{Signal, Signals};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

/// Runs the work in a thread, and calls `heard` for every signal that would end a program.
pub(crate) fn run<T: Send>(
    signals: &Signals,
    work: impl FnOnce() -> T + Send,
    mut on_signal: impl FnMut(Signal),
) -> Result<T> {
    let (done, working) =
        pipe_with(PipeFlags::CLOEXEC).map_err(|errno| Error::system("make a pipe", errno))?;
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
                Err(errno) => return Err(Error::system("wait for a thread", errno)),
            }
            if !polled[1].revents().is_empty() {
                return thread.join().map_err(|panic| std::panic::resume_unwind(panic));
            }
            while let Some(signal) = signals.next() {
                if signal.ends_by_default() {
                    on_signal(signal);
                }
            }
        }
    })
}

/// Ends this program as a signal would have.
pub(crate) fn exit_by_signal(signal: Signal) -> ! {
    std::process::exit(Exit::Signal(signal.number()).code().into())
}
