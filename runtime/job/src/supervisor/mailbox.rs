//! Messages from threads to the supervisor's event loop, with a file descriptor that is readable while there are some.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, mpsc};

use rustix::event::{EventfdFlags, eventfd};

use jobc_sys::error::{Error, Result};

/// Where the loop finds messages.
#[derive(Debug)]
pub struct Mailbox<T> {
    receiver: mpsc::Receiver<T>,
    sender: mpsc::Sender<T>,
    wakeup: Arc<OwnedFd>,
}

/// Where a thread puts messages.
#[derive(Debug)]
pub struct Sender<T> {
    sender: mpsc::Sender<T>,
    wakeup: Arc<OwnedFd>,
}

impl<T> Mailbox<T> {
    /// An empty mailbox.
    pub fn new() -> Result<Self> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| Error::system("create an eventfd", errno))?;
        let (sender, receiver) = mpsc::channel();
        Ok(Self { receiver, sender, wakeup: Arc::new(bell) })
    }

    /// A way in, for a thread.
    pub fn sender(&self) -> Sender<T> {
        Sender { sender: self.sender.clone(), wakeup: Arc::clone(&self.wakeup) }
    }

    /// Silences the bell; call it before the messages are taken.
    pub fn clear_wakeup(&self) {
        let _ = rustix::io::read(&*self.wakeup, &mut [0_u8; 8]);
    }

    /// The next message, if there is one.
    pub fn next(&self) -> Option<T> {
        self.receiver.try_recv().ok()
    }
}

impl<T> AsFd for Mailbox<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wakeup.as_fd()
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), wakeup: Arc::clone(&self.wakeup) }
    }
}

impl<T> Sender<T> {
    /// Adds a message and wakes the loop; without a supervisor the message is dropped.
    pub fn send(&self, message: T) {
        if self.sender.send(message).is_ok() {
            // A counter at its top rings already.
            let _ = rustix::io::write(&*self.wakeup, &1_u64.to_ne_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_event_fd_is_readable_until_it_is_cleared() {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let mailbox = Mailbox::new().unwrap();
        let rings = || {
            let mut polled = [PollFd::new(&mailbox, PollFlags::IN)];
            poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() == 1
        };
        assert!(!rings());
        let sender = mailbox.sender();
        std::thread::scope(|scope| {
            scope.spawn(|| (0..3).for_each(|number| sender.send(number)));
        });
        assert!(rings());
        mailbox.clear_wakeup();
        assert!(!rings());
        assert_eq!(std::iter::from_fn(|| mailbox.next()).collect::<Vec<_>>(), [0, 1, 2]);
    }
}
