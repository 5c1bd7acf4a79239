//! Progress of operations on images: numbers for a bar, lines for a log.

use jobc_schema::digest::Digest;

/// An event; those named `Blob…` and `Layer…` are frequent, and come from several threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A blob is being transferred: the bytes received.
    Blob {
        /// Which.
        digest: Digest,
        /// Bytes received.
        done: u64,
        /// Its size in bytes, if known.
        total: Option<u64>,
        /// Whether it was here before and nothing had to be done.
        known: bool,
    },
    /// An archive or a directory is being imported: the bytes read.
    Source {
        /// Bytes read.
        done: u64,
        /// Its size in bytes, if known.
        total: Option<u64>,
    },
    /// A layer is being unpacked: the bytes read.
    Layer {
        /// Which, by the digest of its blob.
        digest: Digest,
        /// Bytes read of the blob.
        done: u64,
        /// Bytes that the blob has.
        total: u64,
        /// Whether it was unpacked before.
        known: bool,
    },
    /// A step of a build starts.
    Step {
        /// Its number in its stage, from 1.
        number: usize,
        /// How many its stage has.
        of: usize,
        /// The stage, by its name or number.
        stage: String,
        /// The instruction as written, on one line.
        text: String,
        /// Whether its result was known.
        cached: bool,
    },
    /// A line that a build's command wrote, without its end.
    Output {
        /// The stage.
        stage: String,
        /// The step's number.
        number: usize,
        /// The line as it came.
        line: Vec<u8>,
    },
    /// A note for the user.
    Note(String),
}

/// The receiver of the progress.
pub type ProgressFn<'a> = &'a (dyn Fn(Progress) + Sync);

/// Nobody.
pub fn ignore_progress(_: Progress) {}
