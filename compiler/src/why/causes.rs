//! Maps a line of a built file to its parts in the source map.

use jobc_schema::Pointer;

use super::lines::Lines;
use super::source_map::Part;

/// A value on a line of a built file, and the parts that record its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineCause<'a> {
    /// The value, as a JSON Pointer; `None` in a text.
    pub pointer: Option<Pointer>,
    /// Its parts; empty if nothing is recorded for it.
    pub parts: Vec<&'a Part>,
}

/// The causes of a line of a file: one for each innermost value on it; none for an empty line.
pub fn causes_of_line<'a>(parts: &'a [Part], lines: &Lines, line: u32) -> Vec<LineCause<'a>> {
    if lines.tree().is_some() {
        let value = |pointer: Pointer| {
            let parts = nearest(parts, pointer.as_str());
            LineCause { pointer: Some(pointer), parts }
        };
        return lines.pointers_at(line).into_iter().map(value).collect();
    }
    match lines.text(line) {
        Some(text) if !text.is_empty() => {
            vec![LineCause { pointer: None, parts: of_block(parts, lines, line) }]
        }
        _ => vec![],
    }
}

/// The parts of a value, or those of its nearest ancestor that has any.
pub(super) fn reason_of<'a>(parts: &'a [Part], pointer: &str) -> Vec<&'a Part> {
    let mut wanted = pointer;
    loop {
        let found: Vec<&Part> = parts.iter().filter(|part| part.pointer.as_deref() == Some(wanted)).collect();
        match wanted.rfind('/') {
            Some(end) if found.is_empty() => wanted = &wanted[..end],
            _ => return found,
        }
    }
}

/// The parts of a value, or those of its nearest ancestor that has any; if there is none, those inside it.
fn nearest<'a>(parts: &'a [Part], pointer: &str) -> Vec<&'a Part> {
    let at = |wanted: &str| -> Vec<&'a Part> {
        parts.iter().filter(|part| part.pointer.as_deref() == Some(wanted)).collect()
    };
    let mut wanted = pointer;
    loop {
        let found = at(wanted);
        if !found.is_empty() {
            return found;
        }
        if wanted == pointer {
            let below = format!("{pointer}/");
            let inside: Vec<&Part> = parts
                .iter()
                .filter(|part| part.pointer.as_ref().is_some_and(|inner| inner.starts_with(&below)))
                .collect();
            if !inside.is_empty() {
                return inside;
            }
        }
        match wanted.rfind('/') {
            Some(end) => wanted = &wanted[..end],
            None => return vec![],
        }
    }
}

/// The parts of a line in a text: its own, or those of the last line before it in the same paragraph.
fn of_block<'a>(parts: &'a [Part], lines: &Lines, line: u32) -> Vec<&'a Part> {
    let is_text = |line: u32| lines.text(line).is_some_and(|text| !text.is_empty());
    let on = |line: u32| parts.iter().filter(|part| part.line == Some(line)).collect::<Vec<_>>();
    let above = (1..=line).rev().take_while(|&line| is_text(line));
    let below = (line..).take_while(|&line| is_text(line));
    above.chain(below).map(on).find(|found| !found.is_empty()).unwrap_or_default()
}

/// The names after `params.` in a text with expressions.
pub fn names_of_parameters(text: &str) -> Vec<String> {
    let expressions =
        text.split("${{").skip(1).filter_map(|rest| rest.split_once("}}")).map(|(inside, _)| inside);
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let after = |inside: &str| -> Vec<String> {
        let found = inside
            .split("params.")
            .skip(1)
            .map(|rest| rest.split(|c| !is_name(c)).next().unwrap_or_default());
        found.filter(|name| !name.is_empty()).map(str::to_owned).collect()
    };
    let mut names: Vec<String> = expressions.flat_map(after).collect();
    names.sort_unstable();
    names
}
