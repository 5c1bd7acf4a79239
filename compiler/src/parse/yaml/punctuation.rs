//! Full-width punctuation of Chinese or Japanese input methods, where YAML needs ASCII.

use jobc_schema::plural;

use crate::diagnostic::{Diagnostic, Edit, Fix, Location, Safety, codes};

use super::super::report::Report;
use super::blank::for_each_line;

/// The ASCII equivalent of a full-width character that has a meaning in YAML.
fn instead(c: char) -> Option<char> {
    match c {
        '：' => Some(':'),
        '｛' => Some('{'),
        '｝' => Some('}'),
        '［' => Some('['),
        '］' => Some(']'),
        '，' => Some(','),
        '－' => Some('-'),
        _ => None,
    }
}

/// Reports full-width punctuation instead of ASCII in a text that is not YAML; returns whether there is any.
pub(super) fn report(text: &str, report: &mut Report<'_>) -> bool {
    push(&all(text), text, report)
}

/// Reports brackets, commas and dashes that can only stand for YAML's own, in a text that is YAML:
/// `run: ［python, t.py］`.
pub(super) fn report_sound(text: &str, report: &mut Report<'_>) -> bool {
    if text.is_ascii() {
        return false;
    }
    let mut found = Vec::new();
    for_each_line(text, |line, offset| {
        let mut of_this = Vec::new();
        of_line(line, offset, &mut of_this);
        // Between letters of ASCII, and not part of a text in another script.
        let others =
            of_this.iter().fold(line.to_owned(), |line, (_, c, own)| line.replace(*c, &own.to_string()));
        let value = |line: &str| line.split(" #").next().unwrap_or_default().trim_end().ends_with([']', '}']);
        let is_item = of_this.iter().any(|(_, _, own)| *own == '-');
        if others.is_ascii() && (is_item || value(&others)) {
            found.append(&mut of_this);
        }
    });
    push(&found, text, report)
}

fn push(found: &[(usize, char, char)], text: &str, report: &mut Report<'_>) -> bool {
    let Some(&(first, c, own)) = found.first() else { return false };
    let message = format!("`{c}` (U+{:04X}) is a letter to YAML: write `{own}`", u32::from(c));
    let mut diagnostic =
        Diagnostic::error(codes::SYNTAX, message).at_span(report.span(first, first + c.len_utf8()), "");
    if found.len() > 1 {
        let (more, are) =
            (plural(found.len() - 1, "more character"), if found.len() == 2 { "is" } else { "are" });
        diagnostic = diagnostic.note(format!("{more} {are} full-width"));
    }
    let edit = |&(at, c, own): &(usize, char, char)| {
        let end = at + c.len_utf8();
        let needs_space =
            matches!(own, ':' | ',' | '-') && !text[end..].starts_with([' ', '\r', '\n']) && end < text.len();
        let text = if needs_space { format!("{own} ") } else { own.to_string() };
        Edit { place: Location::Span(report.span(at, end)), text }
    };
    let edits = found.iter().map(edit).collect();
    let message = "write YAML's own punctuation".to_owned();
    diagnostic.fixes.push(Fix { message, edits, safety: Safety::Safe });
    report.push(diagnostic);
    true
}

/// Finds full-width characters instead of ASCII, with their equivalents.
fn all(text: &str) -> Vec<(usize, char, char)> {
    let mut found = Vec::new();
    if !text.is_ascii() {
        for_each_line(text, |line, offset| of_line(line, offset, &mut found));
    }
    found
}

fn of_line(line: &str, offset: usize, found: &mut Vec<(usize, char, char)>) {
    let mut quote: Option<char> = None;
    // Inside brackets, ASCII or full-width.
    let mut depth = 0_usize;
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        let is_fresh = matches!(before, ' ' | '[' | '{' | ',' | ':') || instead(before).is_some();
        match (quote, c) {
            (Some(open), _) => quote = (c != open || before == '\\').then_some(open),
            (None, '#') if before == ' ' => return,
            (None, '"' | '\'') if is_fresh => quote = Some(c),
            (None, '[' | '{') if depth > 0 || is_fresh => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            (None, '｛' | '［') if depth > 0 || begins_value(&line[..at]) => {
                depth += 1;
                found.extend(instead(c).map(|own| (offset + at, c, own)));
            }
            (None, '｝' | '］') if depth > 0 => {
                depth -= 1;
                found.extend(instead(c).map(|own| (offset + at, c, own)));
            }
            (None, '－') if depth == 0 && begins_item(&line[..at]) => found.push((offset + at, c, '-')),
            (None, '，') if depth > 0 => found.push((offset + at, c, ',')),
            (None, '：') if follows_key(&line[..at], depth) => found.push((offset + at, c, ':')),
            _ => {}
        }
        before = c;
    }
}

/// Whether a value begins after this part of a line.
fn begins_value(before: &str) -> bool {
    let before = before.trim_end_matches(' ');
    before.is_empty() || before.ends_with([':', '：']) || is_dash(before)
}

/// Whether an item of a list may begin after this part of a line.
fn begins_item(before: &str) -> bool {
    let before = before.trim_end_matches(' ');
    before.is_empty() || is_dash(before)
}

fn is_dash(front: &str) -> bool {
    matches!(front.trim_start(), "-" | "－")
}

/// Whether this part of a line ends with a key: an ASCII word at its start, or after a bracket or comma.
fn follows_key(before: &str, depth: usize) -> bool {
    let front = before.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || "_-./".contains(c));
    let word = &before[front.len()..];
    let front = front.trim_end_matches(' ');
    !word.is_empty()
        && (front.is_empty()
            || is_dash(front)
            || depth > 0 && front.ends_with(['{', '｛', '[', '［', ',', '，']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn punctuation_in_syntax_is_distinguished_from_that_in_text() {
        let check = |text: &str, expected: &str| {
            let found: String = all(text).into_iter().map(|(_, _, own)| own).collect();
            assert_eq!(found, expected, "{text:?}");
        };
        check("name： demo\n", ":");
        check("roles:\n  main：\n    run： x\n", "::");
        check("roles: ｛main: {run: x}｝\n", "{}");
        check("a: ［1，2］\n", "[,]");
        check("a: {b：1， c: 2}\n", ":,");
        check("- a：1\n", ":");
        check("a:\n  －b\n  － c：1\n", "--:");
        // Text.
        check("description: 訓練：第一，第二\n", "");
        check("a: \"{b：1}\"\n", "");
        check("a: 1 # b：2\n", "");
        check("run: |\n  echo a：b\n", "");
        check("训练：1\n", "");
        check("a: b－c －1\nb: [－1]\n", "");
    }
}
