//! No two jobs of a matrix write to one place.

use std::collections::BTreeMap;

use super::variant::Variant;
use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::document::Node;

/// Reports outputs whose source is the same in two combinations; once for each output.
pub(super) fn compare(variants: &[Variant], sink: &mut Sink) {
    if variants.len() < 2 {
        return;
    }
    let mut writers: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
    let mut reported: Vec<&str> = Vec::new();
    for (number, variant) in variants.iter().enumerate() {
        for entry in variant.document.root.get("outputs").map_or(&[][..], Node::entries) {
            let Some(source) = entry.value.get("source") else { continue };
            let Some(text) = source.as_str() else { continue };
            let place = text.trim_start_matches("./").trim_end_matches('/');
            match writers.get(place) {
                Some(&(other, _)) if other != number => {
                    if !reported.contains(&entry.key.as_str()) {
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
                Some(_) => {}
                None => {
                    writers.insert(place, (number, &entry.key));
                }
            }
        }
    }
}
