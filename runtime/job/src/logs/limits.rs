//! How much of what tasks print is kept.

/// How much of a task's output is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes of a part.
    pub part_bytes: u64,
    /// The most parts; the oldest goes when another begins.
    pub parts: usize,
    /// The most bytes of text in a line of a part; longer ones are cut into pieces.
    pub line_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { part_bytes: 64 << 20, parts: 4, line_bytes: 16 << 10 }
    }
}
