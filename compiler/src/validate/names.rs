//! User-defined keys: names of roles, variables, parameters, ports.

use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::Value as Json;

use crate::diagnostic::{Diagnostic, Safety, codes};
use crate::suggest;

use super::forms::{self, PatternForm};
use super::place;
use super::refused_value::RefusedValue;
use super::report::Report;

/// Reports a key that is not a valid name in its map.
pub(super) fn refused(refused: &RefusedValue<'_>, name: &Json, kind: &Kind, report: &mut Report<'_>) {
    let Some(name) = name.as_str() else { return };
    let at = refused.at.key(name);
    let map = refused.segments.last().map_or("", String::as_str);
    match kind {
        Kind::Pattern { pattern } => {
            let Some(form) = forms::find(pattern) else { return };
            let shown = if name.is_empty() { "an empty string".to_owned() } else { format!("`{name}`") };
            let message = format!("{shown} is not {}", what(map, form));
            let mut diagnostic =
                Diagnostic::error(codes::BAD_NAME, message).at_place(report.key(&at), "").note(form.rule);
            if let Some(better) = repair(name, form) {
                // Other places may refer to the name.
                diagnostic = report.rename(diagnostic, &at, &better, Safety::Unsafe);
            } else if let Some(longest) = max_length(form).filter(|longest| name.chars().count() > *longest) {
                let count = name.chars().count();
                diagnostic =
                    diagnostic.note(format!("this has {count} characters, {} too many", count - longest));
            }
            report.push(diagnostic);
        }
        Kind::Enum { options } => {
            let options: Vec<&str> =
                options.as_array().into_iter().flatten().filter_map(Json::as_str).collect();
            let mut diagnostic = Diagnostic::error(
                codes::BAD_NAME,
                format!("`{name}` is not a key of `{}`", place::dotted(&refused.segments)),
            )
            .at_place(report.key(&at), "")
            .note(format!("the keys known there are {}", all(&options)));
            if let Some(near) = suggest::nearest(name, options.iter().copied()) {
                diagnostic = report.rename(diagnostic, &at, near, Safety::Safe);
            }
            report.push(diagnostic);
        }
        _ => {}
    }
}

/// The kind of a map's keys.
fn what(map: &str, form: &PatternForm) -> String {
    let what = match map {
        "roles" => "a role's name",
        "images" => "an image's name",
        "data" | "outputs" => "the name of data or outputs",
        "targets" => "a target's name",
        "params" => "a parameter's name",
        "env" => "the name of an environment variable",
        "args" => "the name of a build argument",
        "matrix" | "axes" => "an axis's name",
        "files" => "an absolute path",
        _ => form.what,
    };
    what.to_owned()
}

/// The name with only valid characters, if few changes are needed.
pub(super) fn repair(name: &str, form: &PatternForm) -> Option<String> {
    if form.rule == "begin with `/`" {
        return name.starts_with(|c: char| c.is_ascii_alphanumeric()).then(|| format!("/{name}"));
    }
    let lower = form.rule.contains("lower-case");
    if !lower && !form.rule.contains("digits and `_`") {
        return None;
    }
    let dash = if lower { '-' } else { '_' };
    let longest = max_length(form).unwrap_or(usize::MAX);
    let mut better = String::new();
    for c in name.chars() {
        match c {
            c if c.is_ascii_alphanumeric() && lower => better.push(c.to_ascii_lowercase()),
            c if c.is_ascii_alphanumeric() => better.push(c),
            // A name in another script has no similar one in ASCII.
            c if c.is_alphanumeric() => return None,
            _ if better.ends_with(dash) || better.is_empty() => {}
            _ => better.push(dash),
        }
    }
    let digit_first = form.rule.contains("at either end");
    let better = better.trim_start_matches(|c: char| c.is_ascii_digit() && !digit_first);
    let better = better.trim_matches(dash);
    (!better.is_empty() && better.len() <= longest && better != name).then(|| better.to_owned())
}

/// The maximum length of a name, if it has one.
pub(super) fn max_length(form: &PatternForm) -> Option<usize> {
    let (_, rest) = form.rule.split_once("at most ")?;
    rest.split(' ').next()?.parse().ok()
}

/// All words of a pattern; these lists are short and closed.
fn all(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    words.join(", ")
}
