//! A group of equal pods, which becomes a role.

use std::collections::BTreeMap;

use serde_json::json;

use crate::document::Node;
use crate::openpai::converted;
use crate::source::Span;

use super::super::draft::Draft;
use super::super::nodes::{json as node, number};
use super::containers::Handed;
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
    /// The role of the program in the same pods.
    pub(super) pods: String,
    /// Its pod template.
    pub(super) template: Node,
    /// What its fields say.
    pub(super) facts: Facts,
    /// Its number of instances.
    pub(super) instances: u64,
}

impl Group {
    /// The volumes that it shares with other containers of its pods, with the names of the directories of the job.
    pub(super) fn handed(&self, all: &Handed) -> BTreeMap<String, String> {
        let mut own: BTreeMap<String, String> = BTreeMap::new();
        for (_, volume) in all.iter().filter(|(pods, _)| *pods == self.pods) {
            let is_alone = all.iter().filter(|(_, other)| other == volume).count() == 1;
            let name = if is_alone { volume.clone() } else { format!("{}-{volume}", self.pods) };
            own.insert(volume.clone(), converted(&name, 28, true).unwrap_or("files".to_owned()));
        }
        own
    }

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
