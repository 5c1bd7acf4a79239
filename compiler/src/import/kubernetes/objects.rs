//! The other objects of a file: what the job refers to is read from them, the rest stays with the cluster.

use std::cell::RefCell;
use std::collections::BTreeSet;

use crate::document::Node;

use super::super::draft::Draft;
use super::super::values::{text_at, text_in};

/// The objects beside the job.
pub(super) struct Objects<'a> {
    all: Vec<&'a Node>,
    /// Those that the job takes something from, by kind and name, with the field that it became.
    used: RefCell<BTreeSet<(String, String, String)>>,
}

impl<'a> Objects<'a> {
    /// The objects beside the job.
    pub(super) fn new(all: Vec<&'a Node>) -> Self {
        Self { all, used: RefCell::default() }
    }

    /// The object of a kind with a name, from which a field of the job is made.
    pub(super) fn get(&self, kind: &str, name: &str, becomes: &str) -> Option<&'a Node> {
        let found = self.find(kind, name)?;
        self.used.borrow_mut().insert((kind.to_owned(), name.to_owned(), becomes.to_owned()));
        Some(found)
    }

    fn find(&self, kind: &str, name: &str) -> Option<&'a Node> {
        let is = |object: &&&Node| {
            text_at(object, "kind").as_deref() == Some(kind)
                && text_in(object, &["metadata", "name"]).as_deref() == Some(name)
        };
        self.all.iter().find(is).copied()
    }

    /// A text of a ConfigMap.
    pub(super) fn config(&self, name: &str, key: &str, becomes: &str) -> Option<String> {
        self.get("ConfigMap", name, becomes).and_then(|map| text_in(map, &["data", key]))
    }

    /// The keys of a ConfigMap or a Secret.
    pub(super) fn keys(&self, kind: &str, name: &str, becomes: &str) -> Option<Vec<String>> {
        let object = self.get(kind, name, becomes)?;
        let maps = ["data", "stringData", "binaryData"].into_iter().filter_map(|key| object.get(key));
        Some(maps.flat_map(|map| map.entries().iter().map(|entry| entry.key.clone())).collect())
    }

    /// Accounts for each object.
    pub(super) fn finish(&self, draft: &mut Draft<'_>) {
        let used = self.used.borrow();
        for object in &self.all {
            let kind = text_at(object, "kind").unwrap_or_default();
            let name = text_in(object, &["metadata", "name"]).unwrap_or_default();
            let part = object.get("kind").map_or(object.span, |kind| kind.span);
            let becomes = used.iter().filter(|(of, called, _)| *of == kind && *called == name);
            let becomes: Vec<&str> = becomes.map(|(.., becomes)| becomes.as_str()).collect();
            if kind != "Secret" && !becomes.is_empty() {
                draft.account.field(part, becomes.join(", "));
            } else {
                draft.note(part, stays(&kind));
            }
        }
    }
}

/// Why an object needs no field.
fn stays(kind: &str) -> &'static str {
    match kind {
        "Service" => "instances find each other by name: `${{ hosts.ROLE[0] }}`",
        "Namespace" => "it stays an object of the cluster; the target names it",
        "PersistentVolumeClaim" | "PersistentVolume" => {
            "it stays an object of the cluster; `pvc:NAME` mounts it"
        }
        "Secret" => "its values are not written to the job file; it stays an object of the cluster",
        "ConfigMap" => "no part of the job refers to it",
        _ => "it stays an object of the cluster: `kubectl apply` creates it",
    }
}
