//! `jobEnvs`: environment variables, two of which OpenPAI itself interpreted.

use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::document::{Entry, Value};
use crate::import::fields::{Fields, describe};
use crate::import::nodes::{entry, string};

/// The variables that OpenPAI interpreted, with their effects.
const VARIABLE_NAMES: [(&str, &str); 2] = [
    ("paiAzRDMA", "Azure's RDMA is gone from OpenPAI; InfiniBand is `infiniband` of protocol v2"),
    ("isDebug", "OpenPAI kept a failed container for a week; write `|| sleep 7d` behind the command"),
];

/// The variables as entries of `env`; OpenPAI 0.14 passed every key to the container unchanged.
pub(super) fn variables(job: &Fields<'_>, sink: &mut Sink) -> Vec<Entry> {
    let Some(field) = job.entry("jobEnvs").filter(|field| super::has_effect(&field.value)) else {
        return vec![];
    };
    if !matches!(field.value.value, Value::Mapping(_)) {
        let message = format!("`jobEnvs` must be a map of variables, not {}", describe(&field.value));
        sink.push(Diagnostic::error(codes::OPENPAI_VALUE, message).at_span(field.value.span, ""));
    }
    let mut variables = vec![];
    for item in field.value.entries() {
        let text = match &item.value.value {
            Value::String(text) | Value::Number { text, .. } => text.clone(),
            Value::Bool(flag) => flag.to_string(),
            Value::Null => continue,
            _ => {
                let message =
                    format!("`{}` of `jobEnvs` must be a string, not {}", item.key, describe(&item.value));
                sink.push(Diagnostic::error(codes::OPENPAI_VALUE, message).at_span(item.value.span, ""));
                continue;
            }
        };
        if let Some((word, why)) = VARIABLE_NAMES.iter().find(|(word, _)| *word == item.key) {
            if super::has_effect(&item.value) {
                let message = format!("`{word}` is left out: protocol v2 has nothing like it");
                sink.push(
                    Diagnostic::warning(codes::OPENPAI_IGNORED, message)
                        .at_span(item.key_span, "")
                        .note(*why),
                );
            }
            continue;
        }
        let text = text.replace("${{", "${{ '${{' }}");
        variables.push(entry(item.key.as_str(), item.key_span, string(item.value.span, text)));
    }
    variables
}
