//! Tasks that start together.

use super::task::TaskNumber;

/// Tasks that are let go together: those that became startable together.
#[derive(Debug)]
pub(super) struct Gang {
    /// Those that may still be let go by it.
    pub(super) members: Vec<TaskNumber>,
    /// How many must be made before the first is let go.
    pub(super) needed: usize,
    /// How many are made.
    pub(super) created: usize,
    /// How many are not over.
    pub(super) possible: usize,
    /// Whether it was let go; members that come later follow at once.
    pub(super) open: bool,
}
