//! Where the parts of an object come from, noted while it is made.

use jobc_schema::Pointer;

use crate::backend::{FilePart, Origin, PartSource};

/// Origins of the parts below one place of an object.
#[derive(Debug, Default)]
pub(super) struct Origins {
    base: Pointer,
    found: Vec<Origin>,
}

impl Origins {
    /// Notes origins below this place.
    pub(super) fn below(base: Pointer) -> Self {
        Self { base, found: vec![] }
    }

    /// Notes that a part comes from a place of the job file.
    pub(super) fn spec(&mut self, part: impl IntoIterator<Item = impl AsRef<str>>, spec: &Pointer) {
        self.note(part, PartSource::Spec(spec.clone()));
    }

    /// Notes that a part comes from a setting of the target.
    pub(super) fn target(&mut self, part: impl IntoIterator<Item = impl AsRef<str>>, keys: &[&str]) {
        self.note(part, PartSource::Target(Pointer::ROOT.key("kubernetes").keys(keys.iter().copied())));
    }

    /// Notes where a part comes from.
    pub(super) fn from(&mut self, part: impl IntoIterator<Item = impl AsRef<str>>, from: PartSource) {
        self.note(part, from);
    }

    /// Notes that a part is a default.
    pub(super) fn fallback(&mut self, part: impl IntoIterator<Item = impl AsRef<str>>, why: &'static str) {
        self.note(part, PartSource::Default(why));
    }

    /// The origins without those of removed parts.
    pub(super) fn without(mut self, parts: &[Pointer]) -> Self {
        self.found.retain(|origin| !matches!(&origin.part, FilePart::Pointer(at) if parts.contains(at)));
        self
    }

    /// The origins in an object that has this one at a place.
    pub(super) fn moved_below(mut self, place: &Pointer) -> Self {
        for Origin { part, .. } in &mut self.found {
            if let FilePart::Pointer(at) = part {
                *at = place.keys(at.segments());
            }
        }
        self
    }

    /// Adds the origins of a part of the object.
    pub(super) fn append(&mut self, other: Self) {
        self.found.extend(other.found);
    }

    /// The origins.
    pub(super) fn into_list(self) -> Vec<Origin> {
        self.found
    }

    fn note(&mut self, part: impl IntoIterator<Item = impl AsRef<str>>, from: PartSource) {
        let part = FilePart::Pointer(self.base.keys(part));
        self.found.push(Origin { part, from });
    }
}
