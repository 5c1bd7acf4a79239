//! A role whose fields are being written.

use crate::source::Span;

use super::super::draft::Draft;

/// A role in the making.
pub(in super::super) struct Role<'d, 's> {
    /// The job.
    pub(in super::super) draft: &'d mut Draft<'s>,
    /// The name of the role.
    pub(in super::super) name: &'d str,
}

impl Role<'_, '_> {
    /// Sets a field of the role, and accounts for the part that it comes from.
    pub(in super::super) fn field(&mut self, path: &[&str], part: Span, value: crate::document::Node) {
        let path: Vec<&str> = ["roles", self.name].into_iter().chain(path.iter().copied()).collect();
        self.draft.field(&path, part, value);
    }

    /// Appends to a list of the role.
    pub(in super::super) fn push(&mut self, path: &[&str], part: Span, value: crate::document::Node) {
        let path: Vec<&str> = ["roles", self.name].into_iter().chain(path.iter().copied()).collect();
        self.draft.push(&path, part, value);
    }

    /// The value of a field of the role so far.
    pub(in super::super) fn get(&self, path: &[&str]) -> Option<&crate::document::Node> {
        let path: Vec<&str> = ["roles", self.name].into_iter().chain(path.iter().copied()).collect();
        self.draft.get(&path)
    }
}
