//! Blanks that are not spaces to YAML, such as a no-break space from a web page, where the text needs a space.

use crate::blank::{instead, name};
use crate::diagnostic::{Diagnostic, Edit, Fix, Location, Safety, codes};

use super::super::report::Report;

/// Reports such blanks where YAML needs a space: in the indentation, after a key's colon, or after an item's dash.
///
/// Returns whether there are any; if so, the meaning of the text is unknown.
pub(super) fn report_odd(text: &str, report: &mut Report<'_>) -> bool {
    if text.is_ascii() {
        return false;
    }
    let found = all(text);
    let Some(&(first, c)) = found.first() else { return false };
    let what = name(c).unwrap_or("blank");
    let article = if what.starts_with('i') { "an" } else { "a" };
    let message = format!("{article} {what} (U+{:04X}) stands where YAML needs a space", u32::from(c));
    let mut diagnostic = Diagnostic::error(codes::MISSING_BLANK, message)
        .at_span(report.span(first, first + c.len_utf8()), "looks like a space");
    if found.len() > 1 {
        let (count, places) = (found.len() - 1, if found.len() == 2 { "place" } else { "places" });
        diagnostic = diagnostic.note(format!("the same at {count} more {places}"));
    }
    let edit = |&(at, c): &(usize, char)| Edit {
        place: Location::Span(report.span(at, at + c.len_utf8())),
        text: if is_wide(text, at, c) { "  ".to_owned() } else { instead(c).to_owned() },
    };
    let edits = found.iter().map(edit).collect();
    let message = "replace it with a space".to_owned();
    diagnostic.fixes.push(Fix { message, edits, safety: Safety::Safe });
    report.push(diagnostic);
    true
}

/// Whether a blank of the indentation is as wide as two spaces.
fn is_wide(text: &str, at: usize, c: char) -> bool {
    let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
    c == '\u{3000}' && text[line..at].chars().all(char::is_whitespace)
}

/// Finds all such blanks where YAML needs a space.
fn all(text: &str) -> Vec<(usize, char)> {
    let mut found = Vec::new();
    for_each_line(text, |line, offset| of_line(line, offset, &mut found));
    found
}

/// Calls a function for each line that is not in a block scalar, with the offset of its first byte.
pub(super) fn for_each_line<'a>(text: &'a str, mut visit: impl FnMut(&'a str, usize)) {
    let mut start = 0;
    // The indentation of the line that begins a block scalar.
    let mut block: Option<usize> = None;
    for line in text.split_inclusive('\n') {
        let body = line.trim_end_matches(['\r', '\n']);
        let spaces = body.len() - body.trim_start_matches(' ').len();
        if block.is_some_and(|opener| body.trim().is_empty() || spaces > opener) {
            start += line.len();
            continue;
        }
        let skip = usize::from(start == 0 && body.starts_with('\u{feff}')) * '\u{feff}'.len_utf8();
        visit(&body[skip..], start + skip);
        // A comment may follow; ` #` may also be in a key.
        let opens = [body, body.split(" #").next().unwrap_or_default()].into_iter().any(|code| {
            let code = code.trim_end_matches(|c: char| c.is_whitespace());
            let code = code.trim_end_matches(|c: char| c.is_ascii_digit() || "+-".contains(c));
            code.ends_with(" |") || code.ends_with(" >")
        });
        block = opens.then_some(spaces);
        start += line.len();
    }
}

fn of_line(line: &str, offset: usize, found: &mut Vec<(usize, char)>) {
    let odd = |c: char| name(c).is_some();
    let mut quote: Option<char> = None;
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        let fresh = before == ' ' || odd(before) || matches!(before, '[' | '{' | ',' | ':');
        match (quote, c) {
            (Some(open), _) => quote = (c != open || before == '\\').then_some(open),
            (None, '#') if fresh => return,
            (None, '"' | '\'') if fresh => quote = Some(c),
            (None, c) if odd(c) && structural(&line[..at], &line[at..]) => found.push((offset + at, c)),
            _ => {}
        }
        before = c;
    }
}

/// Whether a blank between these two parts of a line must be a space: it is in the indentation, or right after a
/// key's colon or an item's dash.
fn structural(before: &str, after: &str) -> bool {
    let odd = |c: char| name(c).is_some();
    let before = before.trim_end_matches(odd);
    if after.chars().all(|c| c.is_whitespace() || odd(c)) {
        return false;
    }
    if before.chars().all(|c| c == ' ' || odd(c)) {
        return true;
    }
    if let Some(front) = before.strip_suffix('-') {
        return front.chars().all(|c| c == ' ');
    }
    let Some(head) = before.strip_suffix(':') else { return false };
    let front = head.trim_end_matches(|c: char| c.is_alphanumeric() || "_-./\"'".contains(c));
    let front = front.trim_end_matches(|c: char| c == ' ' || odd(c));
    front.is_empty() || front.ends_with(['{', '[', ',']) || front.trim_end() == "-"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_in_syntax_are_distinguished_from_those_in_text() {
        let check = |text: &str, places: &[usize]| {
            let found: Vec<usize> = all(text).into_iter().map(|(at, _)| at).collect();
            assert_eq!(found, places, "{text:?}");
        };
        check("a:\u{a0}1\n", &[2]);
        check("a:\n\u{a0}\u{a0}b: 1\n", &[3, 5]);
        check("- a:\u{a0}1\n", &[4]);
        check("-\u{a0}a\n", &[1]);
        check("{a:\u{a0}1}\n", &[3]);
        check("\u{feff}a: 1\n", &[]);
        // Text.
        check("a: b\u{a0}c\n", &[]);
        check("a: x\u{a0}\n", &[]);
        check("- \u{a0}\n", &[]);
        check("a: Note:\u{a0}this\n", &[]);
        check("a: \"\u{a0}b\"\n", &[]);
        check("a: |\n  b:\u{a0}c\n  \u{a0}d\n", &[]);
        check("a: 1 #\u{a0}why\n", &[]);
    }
}
