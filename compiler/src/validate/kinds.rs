//! Values of the wrong type: a list instead of a map, a number instead of text.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use crate::diagnostic::{Diagnostic, Safety, Shape, codes};
use crate::document::{Node, Value};
use crate::suggest;

use super::accepted::{accepted, allowed, expected, takes_scalars};
use super::refused_value::RefusedValue;
use super::report::{Report, quoted, source_text};
use super::{amounts, expression, modes, place, values};

/// Reports a value whose type is not allowed at its place.
pub(super) fn wrong(refused: &RefusedValue<'_>, report: &mut Report<'_>) {
    let accepted = accepted(refused.schema, refused.part);
    match &refused.node.value {
        Value::Null => return no_value(refused, &accepted, report),
        // Evaluated later, and checked then.
        Value::String(text) if expression::is_whole(text) && takes_scalars(&accepted) => return,
        Value::Bool(value) if is_env(refused) => return bool_in_env(refused, *value, report),
        Value::Number { text, .. } if amounts::is_amount(refused.part) => {
            return amounts::refused(refused, text, report);
        }
        // `version: 3.8`: that it is none of the numbers is enough.
        Value::Number { .. }
            if accepted.contains("integer") && !allowed(refused.schema, refused.part).is_empty() =>
        {
            return;
        }
        Value::Sequence(_) if takes_scalars(&accepted) && is_repeated(refused, report) => return,
        _ => {}
    }
    let subject = place::subject(&refused.segments);
    let kinds = expected(refused.schema, refused.part);
    let message = format!("{subject} must be {}, not {}", place::either(&kinds), refused.node.describe());
    let diagnostic = Diagnostic::error(codes::WRONG_KIND, message).at_place(report.value(&refused.at), "");
    let free_text = kinds.iter().any(|kind| kind == "a string");
    report.push(advise(diagnostic, refused, &accepted, free_text, report));
}

/// The list that a refused list is an item of, and all scalars in it.
fn flattened<'a>(refused: &RefusedValue<'_>, report: &Report<'a>) -> Option<(&'a Node, Vec<Json>)> {
    if !matches!(refused.node.value, Value::Sequence(_)) {
        return None;
    }
    let list = report.document.at(&refused.at.parent()?)?;
    Some((list, values::flattened(list)?))
}

/// Whether an earlier item of the same list is a list too: one finding is about all of them.
fn is_repeated(refused: &RefusedValue<'_>, report: &Report<'_>) -> bool {
    let Some((list, _)) = flattened(refused, report) else { return false };
    let number: usize = refused.last().parse().unwrap_or_default();
    list.items().iter().take(number).any(|item| matches!(item.value, Value::Sequence(_)))
}

/// Whether the place is a number of GPUs.
fn is_gpu(refused: &RefusedValue<'_>) -> bool {
    matches!(&refused.segments[..], [.., resources, gpu] if resources == "resources" && gpu == "gpu")
        || matches!(&refused.segments[..], [.., gpu, count] if gpu == "gpu" && count == "count")
}

/// Whether a text is a fraction: `"0.5"`, `50%`.
fn is_fraction(text: &str) -> bool {
    let number = text.trim().trim_end_matches('%');
    number.parse::<f64>().is_ok_and(|number| number.fract() != 0.0 || text.trim().ends_with('%'))
}

/// The slice of a card that a fraction of a GPU means, as written in the file.
pub(super) fn slice(percent: u32, report: &Report<'_>) -> String {
    let (count, share, cores) = (report.string("count"), report.string("share"), report.string("cores"));
    format!("{{{count}: 1, {share}: {{{cores}: {percent}}}}}")
}

/// The percentage of a card that a text requests: `"0.5"`, `50%`.
pub(super) fn percent(refused: &RefusedValue<'_>, text: &str) -> Option<u32> {
    let text = text.trim();
    let part = match text.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().ok()? / 100.0,
        None => text.parse::<f64>().ok()?,
    };
    // A float to u32 saturates.
    let percent = (part * 100.0).round();
    let is_part = is_gpu(refused) && refused.last() == "gpu" && (1.0..100.0).contains(&percent);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and 99")]
    is_part.then_some(percent as u32)
}

/// Further help for values of other tools.
pub(super) fn advice(refused: &RefusedValue<'_>) -> Vec<&'static str> {
    match &refused.node.value {
        Value::Number { number, .. } if is_gpu(refused) && refused.last() == "count" && number.is_f64() => {
            vec![
                "a part of a GPU is a slice: a whole `count`, with `share: {cores: 50}` or `share: {memory: 10GiB}`",
            ]
        }
        Value::Number { number, .. } if is_gpu(refused) && number.is_f64() => {
            vec![
                "a part of a GPU is a slice: write `gpu: {count: 1, share: {cores: 50}}`, or `share: {memory: 10GiB}`",
            ]
        }
        Value::String(text) if is_gpu(refused) && is_fraction(text) => {
            vec![
                "a part of a GPU is a slice: write `gpu: {count: 1, share: {cores: 50}}`, or `share: {memory: 10GiB}`",
            ]
        }
        Value::String(text) if is_gpu(refused) && text.eq_ignore_ascii_case("all") => {
            vec!["write the number of GPUs that an instance needs; `jobc gpu ls` lists those of this host"]
        }
        Value::String(text)
            if refused.segments.iter().rev().nth(1).is_some_and(|key| key == "ports")
                && text.contains(':') =>
        {
            vec![
                "write the number inside the container; to reach it from outside, `{port: 80, publish: host}`",
            ]
        }
        _ => vec![],
    }
}

/// Whether the place is a file mode.
fn is_mode(refused: &RefusedValue<'_>) -> bool {
    matches!(&refused.segments[..], [.., files, _, mode] if files == "files" && mode == "mode")
}

fn no_value(refused: &RefusedValue<'_>, accepted: &BTreeSet<&str>, report: &mut Report<'_>) {
    let Some(key) = refused.segments.last() else {
        let diagnostic = Diagnostic::error(codes::NO_VALUE, "the file is empty");
        return report
            .push(diagnostic.at_place(report.value(&refused.at), "").note("`jobc init` writes a first one"));
    };
    let subject = place::subject(&refused.segments);
    let at = if place::is_index(key) { report.value(&refused.at) } else { report.key(&refused.at) };
    let diagnostic = Diagnostic::error(codes::NO_VALUE, format!("{subject} has no value")).at_place(at, "");
    let or_none = if is_required(refused, key) { "" } else { ", or remove the key" };
    let known = refused.schema.keys(&refused.segments);
    report.push(if accepted.len() == 1 && accepted.contains("object") {
        let what = match known {
            [] => String::new(),
            known => {
                format!("; the keys known there are {}", suggest::list(known.iter().map(String::as_str)))
            }
        };
        diagnostic.note(format!("indent the content of {subject} below it{or_none}{what}"))
    } else {
        let kinds = place::either(&expected(refused.schema, refused.part));
        diagnostic.note(format!("write {kinds}{or_none}"))
    });
}

/// Whether the map requires the key.
fn is_required(refused: &RefusedValue<'_>, key: &str) -> bool {
    let above = refused.schema.at(&refused.segments[..refused.segments.len() - 1]);
    let required = above.map(|part| refused.schema.resolve(part)).and_then(|part| part.get("required"));
    required.and_then(Json::as_array).is_some_and(|keys| keys.iter().any(|required| required == key))
}

/// Whether the place is the value of an environment variable, the only place where null and numbers are allowed.
fn is_env(refused: &RefusedValue<'_>) -> bool {
    let [.., map, _] = &refused.segments[..] else { return false };
    map == "env" && accepted(refused.schema, refused.part).contains("null")
}

fn bool_in_env(refused: &RefusedValue<'_>, value: bool, report: &mut Report<'_>) {
    let subject = place::subject(&refused.segments);
    let text = quoted(&value.to_string());
    let diagnostic = Diagnostic::error(
        codes::BOOL_IN_ENV,
        format!("{subject} is a bool, and an environment variable holds text"),
    )
    .at_place(report.value(&refused.at), "")
    .note("programs spell bools differently (`true`, `True`, `1`); quote the spelling that your program expects");
    report.push(report.rewrite(diagnostic, &refused.at, &text, Safety::Safe));
}

/// Adds what to write instead, if that can be determined.
fn advise(
    diagnostic: Diagnostic,
    refused: &RefusedValue<'_>,
    accepted: &BTreeSet<&str>,
    free_text: bool,
    report: &Report<'_>,
) -> Diagnostic {
    let at = &refused.at;
    let diagnostic = advice(refused).into_iter().fold(diagnostic, Diagnostic::note);
    if let Some(value) = values::as_meant(&refused.segments, refused.node) {
        return report.rewrite(diagnostic, at, &report.flow(&value), Safety::Unsafe);
    }
    if let Some((list, words)) = flattened(refused, report).filter(|_| takes_scalars(accepted)) {
        let lists = list.items().iter().filter(|item| matches!(item.value, Value::Sequence(_))).count();
        let safety = if lists == 1 { Safety::Safe } else { Safety::Unsafe };
        let above = at.parent().unwrap_or_default();
        return report.rewrite(diagnostic, &above, &report.flow(&Json::Array(words)), safety);
    }
    match &refused.node.value {
        Value::String(framework) if refused.segments == ["distributed"] => match &roles(report)[..] {
            [] => diagnostic,
            [first, ..] => {
                let of_first = json!({ "framework": framework, "roles": [first] });
                report.rewrite(diagnostic, at, &report.flow(&of_first), Safety::Unsafe)
            }
        },
        Value::Number { number, text } if is_gpu(refused) && number.is_f64() => {
            match percent(refused, text) {
                Some(percent) => report.rewrite(diagnostic, at, &slice(percent, report), Safety::Unsafe),
                None => diagnostic,
            }
        }
        Value::Number { text, .. } if is_mode(refused) => match modes::repair(text) {
            Some((mode, safety)) => report.rewrite(diagnostic, at, &quoted(&mode), safety),
            None => diagnostic.note("write octal digits as a string, such as `\"0644\"`"),
        },
        Value::Number { .. } | Value::Bool(_) if free_text => {
            let text = quoted(&source_text(refused.node));
            let diagnostic = diagnostic.note("quote it to keep it as text");
            report.rewrite(diagnostic, at, &text, Safety::Safe)
        }
        Value::String(text) if accepted.contains("boolean") => match text.to_ascii_lowercase().as_str() {
            "yes" | "on" | "true" | "y" | "1" => report.rewrite(diagnostic, at, "true", Safety::Safe),
            "no" | "off" | "false" | "n" | "0" => report.rewrite(diagnostic, at, "false", Safety::Safe),
            _ => diagnostic,
        },
        Value::String(text)
            if (accepted.contains("number") || accepted.contains("integer"))
                && text.trim().parse::<f64>().is_ok() =>
        {
            let text = text.trim();
            match &allowed(refused.schema, refused.part)[..] {
                [] => report.rewrite(diagnostic, at, text, Safety::Safe),
                [only] if text.parse::<f64>().ok() == only.parse().ok() => {
                    report.rewrite(diagnostic, at, only, Safety::Safe)
                }
                choices => choices.iter().fold(diagnostic, |diagnostic, choice| {
                    report.rewrite(diagnostic, at, choice, Safety::Unsafe)
                }),
            }
        }
        Value::String(text) if accepted.contains("array") && !text.is_empty() => {
            if text.contains("..") {
                return diagnostic.note("write each value, such as `[0, 1, 2]`");
            }
            let list = format!("[{}]", report.string(text));
            // `a, b` is a list without its brackets, or one text.
            let safety = if text.contains(',') { Safety::Unsafe } else { Safety::Safe };
            report.rewrite(diagnostic, at, &list, safety)
        }
        Value::Mapping(_) if accepted.contains("array") => {
            diagnostic.note("write a list, each item after `- `")
        }
        Value::Sequence(_) if refused.last() == "gpu" => {
            diagnostic.note("write a number; the target selects the GPUs")
        }
        Value::Sequence(_) if refused.segments.first().is_some_and(|s| s == "params") => {
            diagnostic.note("for a sweep over several values, write them under `matrix`")
        }
        Value::Sequence(items) if accepted.contains("object") => {
            list_for_map(diagnostic, refused, items, report)
        }
        _ if accepted.contains("object") && !accepted.contains("array") => indentation(diagnostic, refused),
        _ => diagnostic,
    }
}

/// The names of the job's roles.
fn roles<'a>(report: &Report<'a>) -> Vec<&'a str> {
    let roles = report.document.root.get("roles").map_or(&[][..], Node::entries);
    roles.iter().map(|role| role.key.as_str()).collect()
}

/// `env: [A=1, B=2]` and Kubernetes' `env: [{name: A, value: 1}]` as a map.
fn list_for_map(
    diagnostic: Diagnostic,
    refused: &RefusedValue<'_>,
    items: &[Node],
    report: &Report<'_>,
) -> Diagnostic {
    let pair = |item: &Node| {
        if let Some((name, value)) = item.as_str().and_then(|text| text.split_once('=')) {
            return Some(format!("{}: {}", report.string(name), quoted(value)));
        }
        let name = item.get("name")?.as_str()?;
        let value = source_text(item.get("value")?);
        (item.entries().len() == 2).then(|| format!("{}: {}", report.string(name), quoted(&value)))
    };
    let pairs: Option<Vec<String>> = items.iter().map(pair).collect();
    match pairs {
        Some(pairs) if !pairs.is_empty() => {
            report.rewrite(diagnostic, &refused.at, &format!("{{{}}}", pairs.join(", ")), Safety::Safe)
        }
        _ if refused.schema.keys(&refused.segments).is_empty() => {
            let diagnostic = diagnostic.note("write each under its name, without `-`: `NAME: …`");
            match names_of(items) {
                Some((names, key)) => {
                    let message = format!(
                        "write each under its name: {}",
                        suggest::list(names.iter().map(String::as_str))
                    );
                    report.reshape(diagnostic, &refused.at, Shape::ByName { names, key }, message)
                }
                None => diagnostic,
            }
        }
        _ if matches!(items, [only] if !only.entries().is_empty()) => {
            diagnostic.note("remove the `-` before its keys")
        }
        _ => diagnostic,
    }
}

/// The names of the maps in a list, and the key that has them; otherwise derived from a source or mount point.
fn names_of(items: &[Node]) -> Option<(Vec<String>, Option<String>)> {
    let by_key = |key: &str| -> Option<Vec<String>> {
        items.iter().map(|item| item.get(key)?.as_str().map(str::to_owned)).collect()
    };
    let by_path = |key: &str| -> Option<Vec<String>> {
        items.iter().map(|item| values::name_of(item.get(key)?.as_str()?)).collect()
    };
    let distinct =
        |names: &Vec<String>| names.iter().collect::<BTreeSet<_>>().len() == names.len() && !names.is_empty();
    if let Some(names) = by_key("name").filter(distinct) {
        return Some((names, Some("name".to_owned())));
    }
    ["mount", "source"].into_iter().find_map(|key| by_path(key).filter(distinct)).map(|names| (names, None))
}

/// Explains a key of a role directly under `roles`, and similar: it belongs one level deeper.
fn indentation(diagnostic: Diagnostic, refused: &RefusedValue<'_>) -> Diagnostic {
    let [.., map, key] = &refused.segments[..] else { return diagnostic };
    let keys = refused.schema.keys(&refused.segments);
    if keys.iter().any(|known| known == key) {
        diagnostic.note(format!(
            "`{map}` holds names, and `{key}` is a key of what stands under a name; indent it below one"
        ))
    } else {
        diagnostic
    }
}
