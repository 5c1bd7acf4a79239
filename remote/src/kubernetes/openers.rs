//! A few threads that send requests for many.
//!
//! Each thread has memory of its own, which a TLS handshake fills with temporaries. So the threads that read a stream
//! each leave the opening of it to these.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Requests that are sent at the same time.
const THREADS: usize = 8;

type Work = Box<dyn FnOnce() + Send>;

/// The threads; they end when this is dropped.
pub(crate) struct Openers {
    queue: SyncSender<Work>,
}

impl Openers {
    /// Starts the threads.
    pub(crate) fn start() -> std::io::Result<Self> {
        let (queue, receiver) = sync_channel::<Work>(THREADS);
        let receiver = Arc::new(Mutex::new(receiver));
        for _ in 0..THREADS {
            let receiver = Arc::clone(&receiver);
            let thread = std::thread::Builder::new().name("open".to_owned()).stack_size(512 << 10);
            thread.spawn(move || {
                while let Some(work) = next(&receiver) {
                    work();
                }
            })?;
        }
        Ok(Self { queue })
    }

    /// Does something in one of the threads and waits for its result; none if it could not be done.
    pub(crate) fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let (sender, receiver) = sync_channel(1);
        let work = move || {
            let _ = sender.send(work());
        };
        self.queue.send(Box::new(work)).ok()?;
        receiver.recv().ok()
    }
}

/// The next work; the lock is held only while it is waited for.
fn next(receiver: &Mutex<Receiver<Work>>) -> Option<Work> {
    receiver.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_threads_get_their_results() {
        let openers = Arc::new(Openers::start().unwrap());
        let threads: Vec<_> = (0..100)
            .map(|number| {
                let openers = Arc::clone(&openers);
                std::thread::spawn(move || openers.run(move || number * 2))
            })
            .collect();
        let results: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert_eq!(results, (0..100).map(|number| Some(number * 2)).collect::<Vec<_>>());
    }
}
