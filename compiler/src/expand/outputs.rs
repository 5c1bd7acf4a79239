//! Rejects matrices in which two jobs write to the same place.

use std::collections::{BTreeMap, BTreeSet};

use super::variant::Variant;
use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::document::{Node, Value};

/// Reports each output that two combinations write to at the same place: its source, and the directory in it that a
/// role mounts. Each output is reported once.
pub(super) fn compare(variants: &[Variant], sink: &mut Sink) {
    if variants.len() < 2 {
        return;
    }
    let mut writers: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut reported: Vec<&str> = Vec::new();
    for (number, variant) in variants.iter().enumerate() {
        for entry in variant.document.root.get("outputs").map_or(&[][..], Node::entries) {
            let Some(source) = entry.value.get("source") else { continue };
            let Some(text) = source.as_str() else { continue };
            let place = text.trim_start_matches("./").trim_end_matches('/');
            for directory in directories(&variant.document.root, &entry.key) {
                let other = *writers.entry((place, directory)).or_insert(number);
                if other == number || reported.contains(&entry.key.as_str()) {
                    continue;
                }
                reported.push(&entry.key);
                sink.push(
                    Diagnostic::error(
                        codes::MATRIX_OUTPUT,
                        format!("the combinations {other} and {number} both write to `{text}`"),
                    )
                    .at_span(source.span, "the same for several jobs of the matrix")
                    .note("put `${{ job.name }}` or a matrix value into it, as in `./out/${{ job.name }}`"),
                );
            }
        }
    }
}

/// The directories of an output that roles mount; an empty one is the whole output, as if no role named it.
fn directories<'a>(root: &'a Node, output: &str) -> BTreeSet<&'a str> {
    let roles = root.get("roles").map_or(&[][..], Node::entries);
    let mounts = roles.iter().map(|role| match role.value.get("outputs") {
        Some(Node { value: Value::Mapping(mounts), .. }) => {
            let mount = &mounts.iter().find(|mount| mount.key == output)?.value;
            Some(mount.get("subpath").and_then(Node::as_str).unwrap_or_default())
        }
        Some(Node { value: Value::Sequence(names), .. }) => {
            names.iter().any(|name| name.as_str() == Some(output)).then_some("")
        }
        _ => Some(""),
    });
    let found: BTreeSet<&str> = mounts.flatten().collect();
    if found.is_empty() { BTreeSet::from([""]) } else { found }
}
