//! J0150: a backslash followed by blanks at the end of a line, as copied from a web page or a PDF file.

use std::ops::Range;

use super::text_node::TextNode;
use super::typography::report;
use crate::blank;
use crate::diagnostic::{Safety, Sink};

/// Reports lines of a command that the shell does not continue, though their last visible character is a backslash.
pub(super) fn check(written: &TextNode<'_>, sink: &mut Sink) {
    if !written.is_command() {
        return;
    }
    let found = broken_continuations(written.text);
    let Some(first) = found.first() else { return };
    let shown = written.text[first.clone()].chars().nth(1).unwrap_or(' ');
    let blank = blank::name(shown).unwrap_or(if shown == '\t' { "tab" } else { "space" });
    let message = format!(
        "a {blank} after the backslash ends the command here: the backslash must be the last character of the line"
    );
    let fix = written.fix("remove blanks".to_owned(), &found, Safety::Unsafe, |_| "\\".to_owned());
    sink.push(report(written, message, first, fix));
}

/// Backslashes with the blanks after them up to the end of a line, outside single quotes and comments.
fn broken_continuations(script: &str) -> Vec<Range<usize>> {
    let is_blank = |c: char| matches!(c, ' ' | '\t') || blank::name(c).is_some();
    let mut found = Vec::new();
    let (mut single, mut double, mut comment) = (false, false, false);
    let mut chars = script.char_indices().peekable();
    let mut before = '\n';
    while let Some((at, c)) = chars.next() {
        match c {
            '\n' => comment = false,
            _ if comment => {}
            '\'' if !double => single = !single,
            '"' if !single => double = !double,
            '#' if !single && !double && before.is_whitespace() => comment = true,
            '\\' if !single => {
                let rest = &script[at + 1..];
                let length = rest.find(|c| !is_blank(c)).unwrap_or(rest.len());
                if length > 0 && rest[length..].trim_start_matches('\r').starts_with('\n') {
                    found.push(at..at + 1 + length);
                } else {
                    // An escaped character has no special meaning.
                    chars.next();
                }
            }
            _ => {}
        }
        before = c;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_after_a_backslash_at_the_end_of_a_line_are_found() {
        let check = |script: &str, expected: &[&str]| {
            let found: Vec<&str> =
                broken_continuations(script).into_iter().map(|range| &script[range]).collect();
            assert_eq!(found, expected, "{script}");
        };
        check("python t.py \\ \n  --lr 1 \\\u{a0}\n  --x \\\t \n --y", &["\\ ", "\\\u{a0}", "\\\t "]);
        check("echo \"a \\ \n b\"", &["\\ "]);
        check("a \\\n b \\\\ \n c\\ d 'x \\ \n' # \\ \n", &[]);
        check("a \\ ", &[]);
    }
}
