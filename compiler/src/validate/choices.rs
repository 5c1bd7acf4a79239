//! Values that must be one of a set of words.

use crate::diagnostic::{Diagnostic, Safety, codes};
use crate::document::Value;
use crate::suggest::nearest;

use super::accepted::{allowed, expected};
use super::refused_value::RefusedValue;
use super::report::Report;
use super::{expression, kinds, place, values};

/// Reports a value that is not one of the words.
pub(super) fn not_one_of(refused: &RefusedValue<'_>, report: &mut Report<'_>) {
    let choices = allowed(refused.schema, refused.part);
    let Value::String(text) = &refused.node.value else {
        return other_kind(refused, &choices, report);
    };
    // If the part also has a type, the error of `type` reports it.
    let text_type = refused.part.get("type").is_none_or(|kind| kind == "string");
    if expression::has(text) || !text_type {
        return;
    }
    report_word(refused, text, &choices, report);
}

/// Reports a word that is not one of the choices, with the most similar one.
pub(super) fn report_word(
    refused: &RefusedValue<'_>,
    text: &str,
    choices: &[String],
    report: &mut Report<'_>,
) {
    let subject = place::subject(&refused.segments);
    // All words that the place allows: `gang` also accepts a map.
    let part = refused.schema.at(&refused.segments).unwrap_or(refused.part);
    let kinds = place::either(&expected(refused.schema, part));
    let other = other_word(refused, text);
    let near = nearest(text, choices.iter().map(String::as_str)).or(other);
    let message = format!("{subject} must be {kinds}, not `{text}`");
    let mut diagnostic =
        Diagnostic::error(codes::NOT_ONE_OF, message).at_place(report.value(&refused.at), "");
    if let Some(near) = near {
        diagnostic = diagnostic.note(format!("did you mean `{near}`?"));
        let safety = if other.is_some() { Safety::Unsafe } else { Safety::Safe };
        diagnostic = report.rewrite(diagnostic, &refused.at, &report.string(near), safety);
    }
    if let Some(value) = values::as_meant(&refused.segments, refused.node).filter(|_| near.is_none()) {
        diagnostic = report.rewrite(diagnostic, &refused.at, &report.flow(&value), Safety::Unsafe);
    }
    if let Some(percent) = kinds::percent(refused, text) {
        let slice = kinds::slice(percent, report);
        diagnostic = report.rewrite(diagnostic, &refused.at, &slice, Safety::Unsafe);
    }
    for note in kinds::advice(refused) {
        diagnostic = diagnostic.note(note);
    }
    report.push(diagnostic);
}

/// The names of our words in other tools.
fn other_word(refused: &RefusedValue<'_>, text: &str) -> Option<&'static str> {
    let text = text.to_ascii_lowercase();
    if let [.., needs, _] = &refused.segments[..]
        && needs == "needs"
    {
        return match text.as_str() {
            "completed"
            | "complete"
            | "completion"
            | "success"
            | "successful"
            | "done"
            | "finished"
            | "exited"
            | "service_completed_successfully"
            | "afterok" => Some("succeeded"),
            "running" | "start" | "service_started" => Some("started"),
            "healthy" | "service_healthy" | "up" => Some("ready"),
            _ => None,
        };
    }
    if let [distributed, roles, _] = &refused.segments[..]
        && (distributed.as_str(), roles.as_str()) == ("distributed", "roles")
    {
        return match text.as_str() {
            "master" | "leader" => Some("chief"),
            "eval" | "evaluation" => Some("evaluator"),
            "parameter_server" | "parameter-server" | "server" => Some("ps"),
            "slave" => Some("worker"),
            _ => None,
        };
    }
    match (refused.last(), text.as_str()) {
        ("isolation", "strict" | "exclusive" | "full" | "hardware") => Some("hard"),
        ("isolation", "loose" | "software" | "time-slicing") => Some("soft"),
        (
            "framework",
            "pytorch" | "torch" | "pytorchjob" | "pytorch-ddp" | "accelerate" | "lightning" | "fsdp"
            | "elastic",
        ) => Some("torchrun"),
        ("framework", "tf" | "tfjob" | "tf2" | "keras") => Some("tensorflow"),
        ("framework", "openmpi" | "mpijob" | "mpirun" | "intelmpi") => Some("mpi"),
        ("framework", "flax") => Some("jax"),
        _ => None,
    }
}

fn other_kind(refused: &RefusedValue<'_>, choices: &[String], report: &mut Report<'_>) {
    // `version: 2`: the only number with a fixed set of values.
    if let (Value::Number { text, .. }, [only]) = (&refused.node.value, choices) {
        let subject = place::subject(&refused.segments);
        let diagnostic =
            Diagnostic::error(codes::NOT_ONE_OF, format!("{subject} must be {only}, not {text}"))
                .at_place(report.value(&refused.at), "")
                .note(format!("this version of jobc supports version {only} of the format"));
        return report.push(report.rewrite(diagnostic, &refused.at, only, Safety::Unsafe));
    }
    // If the part also has a type, the error of `type` reports it.
    if refused.part.get("type").is_none() {
        kinds::wrong(refused, report);
    }
}
