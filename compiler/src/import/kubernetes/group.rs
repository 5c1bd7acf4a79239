//! A group of equal pods, which becomes a role.

use serde_json::json;

use crate::document::Node;
use crate::source::Span;

use super::super::draft::Draft;
use super::super::nodes::{json as node, number};
use super::facts::Facts;

/// A group of equal pods.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// What names it.
    pub(super) at: Span,
    /// Its name in the source.
    pub(super) source: String,
    /// The role that it becomes.
    pub(super) role: String,
    /// Its pod template.
    pub(super) template: Node,
    /// What its fields say.
    pub(super) facts: Facts,
    /// Its number of instances.
    pub(super) instances: u64,
}

impl Group {
    /// `spec` of its pods.
    pub(super) fn spec(&self) -> Option<&Node> {
        self.template.get("spec")
    }
}

/// Sets the number of retries of a role or of the job; none is the default.
pub(super) fn retries(path: &[&str], max: Option<u64>, part: Span, draft: &mut Draft<'_>) {
    match max {
        Some(0) => draft.note(part, "the default"),
        Some(max) if max < 1_000_000 => {
            let path: Vec<&str> = path.iter().copied().chain(["retry", "max"]).collect();
            draft.field(&path, part, number(part, max));
        }
        Some(_) | None => {
            let path: Vec<&str> = path.iter().copied().chain(["retry"]).collect();
            draft.field(&path, part, node(part, &json!({"max": "unlimited"})));
        }
    }
}
