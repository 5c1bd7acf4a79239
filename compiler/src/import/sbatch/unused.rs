//! Variables that only held options of `srun`: their assignments go with it.

use std::ops::Range;

use super::body::Body;
use super::scan::Class;
use super::steps::Step;

/// Removes the assignments of variables that no other command uses.
pub(super) fn remove(steps: &[Step], body: &mut Body<'_>) {
    let mut names: Vec<&String> = steps.iter().flat_map(|step| &step.variables).collect();
    names.sort();
    names.dedup();
    for name in names {
        let Some(assignments) = assignments(body, name) else { continue };
        let is_elsewhere = |at: &usize| {
            body.classes[*at] != Class::Comment
                && !steps.iter().any(|step| step.range.contains(at))
                && !assignments.iter().any(|range| range.contains(at))
        };
        if !mentions(body.text, name).any(|at| is_elsewhere(&at)) {
            for range in assignments {
                body.remove(range);
            }
        }
    }
}

/// Where a name is.
fn mentions<'t>(text: &'t str, name: &'t str) -> impl Iterator<Item = usize> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let found = text.match_indices(name).map(|(at, _)| at);
    found.filter(move |&at| !text[..at].ends_with(is_part) && !text[at + name.len()..].starts_with(is_part))
}

/// The lines that assign to a variable; none if one of them depends on a condition, or does something else too.
fn assignments(body: &Body<'_>, name: &str) -> Option<Vec<Range<usize>>> {
    let mut found = Vec::new();
    for at in mentions(body.text, name) {
        let after = &body.text[at + name.len()..];
        let value = after.strip_prefix('+').unwrap_or(after).strip_prefix('=');
        let Some(value) = value.filter(|_| body.classes[at] == Class::Code) else { continue };
        let start = body.text[..at].rfind('\n').map_or(0, |end| end + 1);
        let before = body.text[start..at].trim_end();
        if !["", "export", "declare", "declare -a", "local", "readonly"].contains(&before)
            || body.text[start..].starts_with([' ', '\t'])
        {
            return None;
        }
        let end = end(body, body.text.len() - value.len());
        let line = body.text[end..].find('\n').map_or(body.text.len(), |length| end + length + 1);
        let rest = body.text[end..line].trim();
        if !(rest.is_empty() || rest.starts_with('#')) {
            return None;
        }
        found.push(start..line);
    }
    Some(found)
}

/// Where the word of a value ends: behind its brackets and quotes.
fn end(body: &Body<'_>, from: usize) -> usize {
    let mut depth = 0_usize;
    for (at, c) in body.text[from..].char_indices().map(|(at, c)| (from + at, c)) {
        let is_code = body.classes[at] == Class::Code;
        match c {
            '(' if is_code => depth += 1,
            ')' if is_code => depth = depth.saturating_sub(1),
            ' ' | '\t' | '\n' | ';' if is_code && depth == 0 => return at,
            _ => {}
        }
    }
    body.text.len()
}
