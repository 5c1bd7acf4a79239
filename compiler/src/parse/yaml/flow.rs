//! Unquoted `${{ … }}` inside `{}` or `[]`: YAML reads its braces as maps.

use std::ops::Range;

use super::quotes::find_outside;

/// The scalar that contains an unquoted expression, searched from an open bracket to the line of the error.
pub(super) fn unquoted_expression(text: &str, open: usize, at: usize) -> Option<Range<usize>> {
    let end = text[at..].find('\n').map_or(text.len(), |n| at + n);
    let mut dollar = open;
    loop {
        dollar = find_outside(text, dollar, end, &['$'])?;
        if text[dollar..].starts_with("${{") {
            break;
        }
        dollar += 1;
    }
    let line = &text[..end];
    let close = line[dollar..].find("}}").map_or(dollar + 3, |n| dollar + n + 2);
    let tail = line[close..].find([',', ']', '}']).map_or(line.len(), |n| close + n);
    let head = text[open..dollar].rfind([',', '[', '{']).map_or(open, |n| open + n + 1);
    let head = text[head..dollar].rfind(": ").map_or(head, |n| head + n + 2);
    let blank = text[head..dollar].len() - text[head..dollar].trim_start().len();
    Some(head + blank..close + text[close..tail].trim_end().len())
}

/// Quotes a text, with double quotes if possible.
pub(super) fn quote(text: &str) -> String {
    if !text.contains(['"', '\\']) {
        format!("\"{text}\"")
    } else if text.contains('\'') {
        format!("'{}'", text.replace('\'', "''"))
    } else {
        format!("'{text}'")
    }
}
