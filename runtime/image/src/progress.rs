//! What happens to images while somebody waits: numbers for a bar, lines for a log.

use jobc_schema::digest::Digest;

/// Something that happened; what begins with `Blob` and `Layer` comes often, from several threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A blob is on its way: so many bytes of it are here.
    Blob {
        /// Which.
        digest: Digest,
        /// Bytes that are here.
        done: u64,
        /// Bytes that it has, where that is known.
        total: Option<u64>,
        /// Whether it was here before and nothing had to be done.
        known: bool,
    },
    /// An archive or a folder is being brought in: so many bytes of it were read.
    Source {
        /// Bytes read.
        done: u64,
        /// Bytes that it has, where that is known.
        total: Option<u64>,
    },
    /// A layer is being unpacked: so many bytes of it were read.
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
    /// A step of a build begins.
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
    /// A person should know something.
    Note(String),
}

/// Who is told.
pub type Told<'a> = &'a (dyn Fn(Progress) + Sync);

/// Nobody.
pub fn untold(_: Progress) {}
