//! The reader of pods: what all its parts share.

use crate::document::Node;
use crate::source::Span;

use super::super::amounts::duration;
use super::super::container::{Mounted, Role};
use super::super::nodes::string;
use super::super::values::text_at;
use super::context::Context;
use super::facts::number_of;
use super::settings::Settings;

/// Pods of one group that are being read.
pub(super) struct Pod<'c, 'd, 's> {
    /// The role that they become.
    pub(super) role: Role<'d, 's>,
    /// What all pods of the job share.
    pub(super) context: &'c Context<'c>,
    /// Settings of a target.
    pub(super) settings: &'c mut Settings,
    /// `spec`.
    pub(super) spec: &'c Node,
    /// The names of `data` and `outputs` that the role mounts.
    pub(super) mounted: Vec<Mounted>,
}

impl Pod<'_, '_, '_> {
    /// A time in seconds at a field of the role.
    pub(super) fn seconds(&mut self, path: &[&str], node: &Node, part: Span) {
        match number_of(node) {
            // The default of both.
            Some(30) if path == ["grace_period"] => self.role.draft.note(part, "the default"),
            Some(0) => self.role.draft.note(part, "no time"),
            Some(seconds) => self.role.field(path, part, string(part, duration(seconds))),
            None => self.role.draft.invalid(part, "the value is not a number of seconds", ""),
        }
    }
}

/// The volume or claim of a pod with a name.
pub(super) fn named<'n>(list: Option<&'n Node>, name: &str) -> Option<&'n Node> {
    list.map_or(&[][..], Node::items).iter().find(|item| text_at(item, "name").as_deref() == Some(name))
}
