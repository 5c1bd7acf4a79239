//! Read-ahead: one thread decompresses while another writes to files.

use std::io::{self, BufRead, Read};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;

/// Bytes of a piece that goes from one thread to the other.
const CHUNK_SIZE: usize = 1 << 18;

/// How many pieces there are at most; with their two ends and the decompressor's own, about 3 MiB a reader.
const MAX_CHUNKS: usize = 10;

/// Calls `work` with a reader of `source`, while another thread reads ahead and calls `seen` with every piece.
///
/// # Errors
///
/// Those of `work`; the reader passes an error of the source to `work`.
pub fn with_read_ahead<T>(
    mut source: impl Read + Send,
    mut seen: impl FnMut(&[u8]) + Send,
    work: impl FnOnce(&mut ReadAhead) -> T,
) -> T {
    let (full, filled) = sync_channel(MAX_CHUNKS);
    let (empty, emptied) = channel();
    for _ in 0..MAX_CHUNKS {
        // The other end is here.
        let _ = empty.send(Vec::with_capacity(CHUNK_SIZE));
    }
    thread::scope(|scope| {
        scope.spawn(move || read(&mut source, &mut seen, &emptied, &full));
        let mut ahead = ReadAhead { filled, empty, piece: Vec::new(), at: 0, ended: false };
        work(&mut ahead)
        // With the reader the thread's next piece has nowhere to go, and it ends.
    })
}

fn read(
    source: &mut impl Read,
    seen: &mut impl FnMut(&[u8]),
    emptied: &Receiver<Vec<u8>>,
    full: &SyncSender<io::Result<Vec<u8>>>,
) {
    while let Ok(mut piece) = emptied.recv() {
        piece.clear();
        let result = source.take(CHUNK_SIZE as u64).read_to_end(&mut piece);
        seen(&piece);
        let count = piece.len();
        // Data before an error is valid.
        if (count > 0 || result.is_ok()) && full.send(Ok(piece)).is_err() {
            return;
        }
        match result {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) => {
                let _ = full.send(Err(error));
                return;
            }
        }
    }
}

/// Data read by another thread.
#[derive(Debug)]
pub struct ReadAhead {
    filled: Receiver<io::Result<Vec<u8>>>,
    empty: std::sync::mpsc::Sender<Vec<u8>>,
    piece: Vec<u8>,
    at: usize,
    ended: bool,
}

impl BufRead for ReadAhead {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at == self.piece.len() && !self.ended {
            let piece = self.filled.recv().map_err(|_| io::Error::other("nothing follows an error"))??;
            self.ended = piece.is_empty();
            self.at = 0;
            let used = std::mem::replace(&mut self.piece, piece);
            if used.capacity() > 0 {
                let _ = self.empty.send(used);
            }
        }
        Ok(&self.piece[self.at..])
    }

    fn consume(&mut self, count: usize) {
        self.at += count;
    }
}

impl Read for ReadAhead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let there = self.fill_buf()?;
        let count = there.len().min(buffer.len());
        buffer[..count].copy_from_slice(&there[..count]);
        self.consume(count);
        Ok(count)
    }
}
