//! The cursor in JSON: an open string is closed, and the text after it is kept or replaced with closing brackets.

use camino::Utf8Path;

use super::{Beside, Cursor, MARK, marked};
use crate::analysis::parse_alone;

/// The possible places of the cursor.
pub(super) fn find(path: Option<&Utf8Path>, whole: &str, offset: usize) -> Vec<Cursor> {
    let (before, rest) = whole.split_at(offset);
    let (in_string, closing) = state(before);
    // An unquoted word is treated as if it were quoted.
    let word = before
        .rfind(|c: char| !is_word(c))
        .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
    let (head, inserted) = if in_string {
        (before.to_owned(), 0)
    } else {
        (format!("{}\"{}", &before[..word], &before[word..]), 1)
    };
    let line = rest.find('\n').unwrap_or(rest.len());
    let end = match rest[..line].find('"') {
        Some(quote) if in_string => quote + 1,
        _ => rest.find(|c: char| !is_word(c)).unwrap_or(rest.len()),
    };
    let tail = &rest[end..];
    let has_colon = tail.trim_start().starts_with(':');
    let mut found: Vec<Cursor> = vec![];
    for value in [if has_colon { "" } else { ": 0" }, ""] {
        for tail in [tail, &closing] {
            let tried = format!("{head}{MARK}\"{value}{tail}");
            let Some(document) = parse_alone(path.or(Some(Utf8Path::new("job.json"))), &tried) else {
                continue;
            };
            let cursor = marked(&document.root, &mut vec![], &tried, head.len());
            let Some(cursor) = cursor.filter(|cursor| cursor.is_key != value.is_empty() || has_colon) else {
                continue;
            };
            if !found.iter().any(|known| known.is_key == cursor.is_key && known.path == cursor.path) {
                let replace = cursor.replace.start - inserted..offset;
                found.push(Cursor { replace, document, has_colon, beside: Beside::Entries, ..cursor });
            }
            break;
        }
    }
    found
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/')
}

/// Whether a text ends in a string, and the brackets that close it.
fn state(text: &str) -> (bool, String) {
    let (mut in_string, mut escaped) = (false, false);
    let mut open = vec![];
    for c in text.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' if in_string => escaped = true,
            '"' => in_string = !in_string,
            // A string cannot span lines, so this one was never closed.
            '\n' => in_string = false,
            _ if in_string => {}
            '{' => open.push('}'),
            '[' => open.push(']'),
            '}' | ']' => _ = open.pop(),
            _ => {}
        }
    }
    (in_string, open.into_iter().rev().collect())
}
