//! Compares two sets of built files by their values, and prints the differences.

pub(crate) mod compare;
mod fields;
pub(crate) mod print;
pub(crate) mod summary;
pub(crate) mod target_files;

use compare::FileChange;
use summary::FieldChanges;
use target_files::TargetFiles;

/// What changed in jobs and in their files.
#[derive(Default)]
pub(crate) struct Comparison {
    pub fields: FieldChanges,
    pub files: Vec<FileChange>,
}

impl Comparison {
    pub(crate) fn of(then: &[TargetFiles], now: &[TargetFiles]) -> Self {
        let mut comparison = Self::default();
        comparison.add(then, now);
        comparison
    }

    /// Adds the jobs of another job file.
    pub(crate) fn add(&mut self, then: &[TargetFiles], now: &[TargetFiles]) {
        self.fields.add(then, now);
        self.files.extend(compare::changes(then, now));
    }
}
