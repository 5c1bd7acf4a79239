//! Sleeping until files of a job have changed (inotify(7)).

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use jobc_sys::readable;
use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
use rustix::io::Errno;

/// How often to poll if the kernel sends no events: no inotify watch is left, or the directory is on a network file
/// system.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Directories whose files may change.
#[derive(Debug)]
pub struct Watch {
    inotify: Option<OwnedFd>,
    /// Directories that did not exist at the last check.
    missing: Vec<PathBuf>,
    /// Some directory could not be watched.
    must_poll: bool,
}

impl Watch {
    /// Watches these directories; those that do not exist yet from their making on.
    pub fn new(directories: impl IntoIterator<Item = PathBuf>) -> Self {
        let inotify = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok();
        let blind = inotify.is_none();
        let mut watch = Self { inotify, missing: directories.into_iter().collect(), must_poll: blind };
        watch.watch_existing();
        watch
    }

    /// Sleeps until something changed since the last call, another file descriptor becomes readable, or the time is
    /// over. Returns for each other file descriptor whether it is readable, or its peer has closed it.
    pub fn wait(&mut self, others: &[BorrowedFd<'_>], longest: Duration) -> io::Result<Vec<bool>> {
        // A directory that was created meanwhile may already have content.
        let longest = if self.watch_existing() { Duration::ZERO } else { longest };
        let longest = if self.must_poll { longest.min(POLL_INTERVAL) } else { longest };
        let own = self.inotify.iter().map(OwnedFd::as_fd);
        let all: Vec<BorrowedFd<'_>> = others.iter().copied().chain(own).collect();
        let mut ready = readable::wait(&all, Some(longest))?;
        ready.truncate(others.len());
        self.drain_events();
        Ok(ready)
    }

    /// Watches the directories that exist by now; returns whether there were any.
    fn watch_existing(&mut self) -> bool {
        let Some(inotify) = &self.inotify else { return false };
        let before = self.missing.len();
        let changes = WatchFlags::MODIFY | WatchFlags::CREATE | WatchFlags::MOVED_TO;
        self.missing.retain(|directory| match add_watch(inotify, directory, changes) {
            Ok(_) => false,
            Err(Errno::NOENT) => true,
            Err(_) => {
                self.must_poll = true;
                false
            }
        });
        self.missing.len() < before
    }

    /// Discards the kernel's events: only their existence matters.
    fn drain_events(&self) {
        let Some(inotify) = &self.inotify else { return };
        let mut buffer = [0; 4096];
        while rustix::io::read(inotify, &mut buffer).is_ok_and(|length| length > 0) {}
    }
}
