//! Sleeping until files of a job have changed (inotify(7)).

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
use rustix::io::Errno;

/// How often to look where the kernel tells nothing: nobody has a watch left, or the folder is on a network drive.
const WITHOUT: Duration = Duration::from_millis(250);

/// Folders whose files may change.
#[derive(Debug)]
pub struct Watch {
    inotify: Option<OwnedFd>,
    /// Folders that were not there when they were last looked for.
    missing: Vec<PathBuf>,
    /// Some folder could not be watched.
    blind: bool,
}

impl Watch {
    /// Watches these folders; those that are not there yet from their making on.
    pub fn new(folders: impl IntoIterator<Item = PathBuf>) -> Self {
        let inotify = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok();
        let blind = inotify.is_none();
        let mut watch = Self { inotify, missing: folders.into_iter().collect(), blind };
        watch.find();
        watch
    }

    /// Sleeps until something changed since the last call, another descriptor can be read, or the time is over. Says of each
    /// other descriptor whether it can be read, or its other end is gone.
    pub fn wait(&mut self, others: &[BorrowedFd<'_>], longest: Duration) -> io::Result<Vec<bool>> {
        // A folder that has come meanwhile may hold something already.
        let longest = if self.find() { Duration::ZERO } else { longest };
        let longest = if self.blind { longest.min(WITHOUT) } else { longest };
        let mut polled: Vec<PollFd<'_>> =
            others.iter().map(|other| PollFd::from_borrowed_fd(*other, PollFlags::IN)).collect();
        if let Some(inotify) = &self.inotify {
            polled.push(PollFd::from_borrowed_fd(inotify.as_fd(), PollFlags::IN));
        }
        let time = Timespec::try_from(longest).map_err(io::Error::other)?;
        match poll(&mut polled, Some(&time)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let ready = polled.iter().take(others.len()).map(|other| !other.revents().is_empty()).collect();
        self.forget();
        Ok(ready)
    }

    /// Watches folders that are there by now; says whether there were any.
    fn find(&mut self) -> bool {
        let Some(inotify) = &self.inotify else { return false };
        let before = self.missing.len();
        let changes = WatchFlags::MODIFY | WatchFlags::CREATE | WatchFlags::MOVED_TO;
        self.missing.retain(|folder| match add_watch(inotify, folder, changes) {
            Ok(_) => false,
            Err(Errno::NOENT) => true,
            Err(_) => {
                self.blind = true;
                false
            }
        });
        self.missing.len() < before
    }

    /// Takes what the kernel has told: that there was something is all that counts.
    fn forget(&self) {
        let Some(inotify) = &self.inotify else { return };
        let mut buffer = [0; 4096];
        while rustix::io::read(inotify, &mut buffer).is_ok_and(|length| length > 0) {}
    }
}
