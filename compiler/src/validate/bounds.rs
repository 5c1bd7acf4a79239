//! Numbers out of range, and empty lists, maps and texts.

use serde_json::Value as Json;

use crate::diagnostic::{Diagnostic, codes};
use crate::document::Value;

use super::refused_value::RefusedValue;
use super::report::Report;
use super::{place, texts};

/// Reports a number that is too small or too large.
pub(super) fn number(refused: &RefusedValue<'_>, report: &mut Report<'_>) {
    let Value::Number { number, text } = &refused.node.value else { return };
    let value = number.as_f64().unwrap_or_default();
    let limit = |keyword: &str| refused.part.get(keyword).and_then(Json::as_f64);
    let subject = place::subject(&refused.segments);
    let wrong = if let Some(least) = limit("minimum").filter(|least| value < *least) {
        format!("at least {least}")
    } else if let Some(max) = limit("maximum").filter(|max| value > *max) {
        format!("at most {max}")
    } else {
        "above 0".to_owned()
    };
    let mut diagnostic =
        Diagnostic::error(codes::OUT_OF_RANGE, format!("{subject} must be {wrong}, not {text}"))
            .at_place(report.value(&refused.at), "");
    if let Some(note) = advice(refused.last(), value) {
        diagnostic = diagnostic.note(note);
    }
    report.push(diagnostic);
}

/// What to write for numbers that other tools read as "all" or "unlimited".
fn advice(key: &str, value: f64) -> Option<&'static str> {
    match key {
        "min_failed" => Some("`none` never ends the job by this role's failures"),
        "min_succeeded" => Some("`none` never ends the job by this role's success; `all` is every instance"),
        "instances" if value == 0.0 => Some("remove the role, or comment it out"),
        "gpu" | "count" if value < 0.0 => Some("`0` hides all GPUs; a number above is how many"),
        "nofile" | "nproc" | "memlock" | "stack" => Some("`unlimited` removes the limit"),
        _ => None,
    }
}

/// Reports a list, a map or a text that must not be empty.
pub(super) fn empty(refused: &RefusedValue<'_>, report: &mut Report<'_>) {
    let subject = place::subject(&refused.segments);
    let message = match &refused.node.value {
        Value::Sequence(_) => format!("{subject} is an empty list"),
        Value::Mapping(_) => match &refused.segments[..] {
            [roles] if roles == "roles" => "the job has no role".to_owned(),
            // The missing key is reported by `exactly one of`.
            _ if !refused.schema.keys(&refused.segments).is_empty() => return,
            _ => format!("{subject} is an empty map"),
        },
        Value::String(_) => format!("{subject} is empty"),
        _ => return,
    };
    let mut diagnostic =
        Diagnostic::error(codes::EMPTY_VALUE, message).at_place(report.value(&refused.at), "");
    diagnostic = match texts::example(refused) {
        Some(example) => diagnostic.note(format!("write for example `{example}`, or remove the key")),
        None => diagnostic.note("write at least one, or remove the key"),
    };
    report.push(diagnostic);
}
