//! A command that is run in a container and must end soon.

use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

use jobc_container::container;
use jobc_container::exec::{self, ExecRequest, ProcessOverrides};
use jobc_container::options::Options;
use jobc_container::process::Exit;
use jobc_container::state::Id;
use jobc_container::state::store::Store;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::readable;
use jobc_sys::signals::Signal;

/// Runs a command as a container's own user, with its environment and without input or output, and waits for its end.
///
/// `None` if it timed out: it was killed, but not the processes that it started. It has ended in any case when the
/// calling thread ends.
pub fn run(store: &Store, id: &Id, arguments: &[String], within: Duration) -> Result<Option<Exit>> {
    run_with_output(store, id, arguments, within, None)
}

/// The same with the file for its output and errors.
pub(crate) fn run_with_output(
    store: &Store,
    id: &Id,
    arguments: &[String],
    within: Duration,
    output: Option<&OwnedFd>,
) -> Result<Option<Exit>> {
    let until = Instant::now() + within;
    let changes = ProcessOverrides { arguments: arguments.to_vec(), ..ProcessOverrides::default() };
    let (process, _) = changes.apply(&container::config(&store.directory(id))?)?;
    let stream = || match output {
        Some(output) => output.try_clone().map_err(|error| Error::new(Kind::System, error.to_string())),
        None => null(),
    };
    let streams = Some([null()?, stream()?, stream()?]);
    let request =
        ExecRequest { process, options: Options { streams, ..Options::default() }, ..ExecRequest::default() };
    let (process, _) = exec::exec(store, id, request)?;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let ready = readable::wait(&[process.pidfd.as_fd()], Some(left));
        if ready.map_err(|errno| Error::system("wait for a process", errno))?[0] {
            return process.wait().map(Some);
        }
        if left.is_zero() {
            Signal::KILL.send(&process.pidfd)?;
            process.wait()?;
            return Ok(None);
        }
    }
}

fn null() -> Result<OwnedFd> {
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC;
    rustix::fs::open("/dev/null", flags, rustix::fs::Mode::empty())
        .map_err(|errno| Error::system("open `/dev/null`", errno))
}
