//! Text in the wrong format.

use serde_json::Value as Json;

use crate::diagnostic::{Diagnostic, Safety, codes};
use crate::document::Value;
use crate::full_width;

use super::accepted::expected;
use super::forms::{self, PatternForm, WHOLE_EXPRESSION};
use super::refused_value::RefusedValue;
use super::report::{Report, quoted};
use super::{amounts, choices, expression, kinds, modes, names, place, values};

/// Reports a string that does not match its pattern.
pub(super) fn malformed(refused: &RefusedValue<'_>, pattern: &str, report: &mut Report<'_>) {
    let Value::String(text) = &refused.node.value else { return };
    let Some(form) = forms::find(pattern) else { return };
    let numeric = pattern == WHOLE_EXPRESSION || !form.words.is_empty();
    // Texts with expressions are checked once evaluated; a number can only be a single expression.
    if expression::is_whole(text) || (expression::has(text) && !numeric) {
        return;
    }
    if amounts::is_amount(refused.part) {
        amounts::refused(refused, text, report);
    } else if numeric {
        not_a_number(refused, text, form, report);
    } else {
        no_such_form(refused, text, form, report);
    }
}

/// Reports a string instead of an integer or a word.
fn not_a_number(refused: &RefusedValue<'_>, text: &str, form: &PatternForm, report: &mut Report<'_>) {
    let subject = place::subject(&refused.segments);
    let ascii = full_width::in_ascii(text);
    let trimmed = ascii.as_deref().unwrap_or(text).trim();
    let is_number = !trimmed.is_empty() && trimmed.bytes().all(|b| b.is_ascii_digit());
    if !is_number && !form.words.is_empty() && !expression::has(text) {
        let words: Vec<String> = form.words.iter().map(|word| (*word).to_owned()).collect();
        return choices::report_word(refused, text, &words, report);
    }
    let kinds = place::either(&expected(refused.schema, refused.part));
    let message = format!("{subject} must be {kinds}, not {}", refused.node.describe());
    let mut diagnostic =
        Diagnostic::error(codes::WRONG_KIND, message).at_place(report.value(&refused.at), "");
    if is_number {
        let why = if ascii.is_some() { full_width::NOTE } else { "without the quotes it is a number" };
        diagnostic = diagnostic.note(why);
        let number = trimmed.trim_start_matches('0');
        let number = if number.is_empty() { "0" } else { number };
        diagnostic = report.rewrite(diagnostic, &refused.at, number, Safety::Safe);
    } else if let Some(value) = values::as_meant(&refused.segments, refused.node) {
        diagnostic = report.rewrite(diagnostic, &refused.at, &report.flow(&value), Safety::Unsafe);
    } else if expression::has(text) {
        diagnostic = diagnostic.note("only a whole expression is allowed: `${{ params.n }}`");
    }
    for note in kinds::advice(refused) {
        diagnostic = diagnostic.note(note);
    }
    report.push(diagnostic);
}

fn no_such_form(refused: &RefusedValue<'_>, text: &str, form: &PatternForm, report: &mut Report<'_>) {
    let what = what(refused, form);
    let shown = if text.is_empty() { "an empty string".to_owned() } else { format!("`{text}`") };
    let mut diagnostic = Diagnostic::error(codes::MALFORMED, format!("{shown} is not {what}"))
        .at_place(report.value(&refused.at), "")
        .note(form.rule);
    let mode = (form.what == "a file mode").then(|| modes::repair(text)).flatten();
    if let Some((mode, safety)) = mode {
        diagnostic = report.rewrite(diagnostic, &refused.at, &quoted(&mode), safety);
    } else if let Some(better) = names::repair(text, form) {
        diagnostic = report.rewrite(diagnostic, &refused.at, &report.string(&better), Safety::Unsafe);
    } else if let Some(longest) = names::max_length(form).filter(|longest| text.chars().count() > *longest) {
        let count = text.chars().count();
        diagnostic = diagnostic.note(format!("this has {count} characters, {} too many", count - longest));
    } else if let Some(example) = example(refused).filter(|_| !form.rule.contains("such as")) {
        diagnostic = diagnostic.note(format!("for example `{}: {example}`", refused.last()));
    }
    report.push(diagnostic);
}

/// What matches a pattern at this place; several fields use the same pattern.
fn what(refused: &RefusedValue<'_>, form: &PatternForm) -> String {
    match refused.last() {
        "compute_capability" => "a CUDA compute capability".to_owned(),
        "cuda" => "a CUDA version".to_owned(),
        "env" => "the name of an environment variable".to_owned(),
        "jobset" => "a release of JobSet".to_owned(),
        "trainer" => "a release of the Kubeflow Trainer".to_owned(),
        _ => form.what.to_owned(),
    }
}

/// The schema's own example for a place.
pub(super) fn example(refused: &RefusedValue<'_>) -> Option<String> {
    let part = refused.schema.at(&refused.segments)?;
    let examples = part.get("examples").or_else(|| refused.part.get("examples"))?.as_array()?;
    // Prefer an example of the type that the user wrote.
    let alike = |example: &&Json| match refused.node.value {
        Value::Sequence(_) => example.is_array(),
        Value::Mapping(_) => example.is_object(),
        _ => example.is_string(),
    };
    let example = examples.iter().find(alike).or(examples.first())?;
    Some(match example {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    })
}
