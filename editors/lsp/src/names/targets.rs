//! The names of a targets file: its own targets, and names of jobs.

use jobc_compiler::document::{Document, Node};

use super::{Kind, Mention, NameCollector};

/// The names of a targets file, in any order. A target provides data or an output: both kinds are returned, and
/// a job has one of them.
pub(crate) fn names_of_targets(document: &Document, text: &str) -> Vec<Mention> {
    let mut found = NameCollector::new(text);
    let root = &document.root;
    found.keys(root.get("targets"), Kind::Target, "", true);
    for name in root.get("default").map(Node::items).unwrap_or_default() {
        found.value(Some(name), Kind::Target, "");
    }
    for entry in root.get("targets").map(Node::entries).unwrap_or_default() {
        for backend in ["kubernetes", "openpai"] {
            let roles = entry.value.get(backend).and_then(|settings| settings.get("roles"));
            found.keys(roles, Kind::Role, "", false);
        }
        for backend in ["kubernetes", "oci", "slurm"] {
            let storage = entry.value.get(backend).and_then(|settings| settings.get("storage"));
            found.keys(storage, Kind::Data, "", false);
            found.keys(storage, Kind::Output, "", false);
        }
        let storages = entry.value.get("openpai").and_then(|settings| settings.get("storages"));
        for storage in storages.map(Node::items).unwrap_or_default() {
            found.value(storage.get("provides"), Kind::Data, "");
            found.value(storage.get("provides"), Kind::Output, "");
        }
    }
    found.mentions
}
