//! How much of what tasks print is kept.

/// How much of a task's output is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of bytes of a part.
    pub part_bytes: u64,
    /// The maximum number of parts; the oldest is removed when another starts.
    pub parts: usize,
    /// The maximum number of bytes of text in a line of a part; longer ones are cut into pieces.
    pub line_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { part_bytes: 64 << 20, parts: 4, line_bytes: 16 << 10 }
    }
}
