//! The lines that determine where the cursor is, without irrelevant ones.

use std::ops::Range;

use crate::text::Text;

/// The lines above and below a line, without what is under the other keys of its section: a job may have many roles.
pub(super) fn context_lines(whole: &str, line: Range<usize>) -> (String, String) {
    let everything = || (whole[..line.start].to_owned(), whole[line.end..].to_owned());
    // The section: from a line that begins in the first column to the next.
    let current = &whole[line.clone()];
    if begins(current) {
        return (heads(&whole[..line.start], false), heads(&whole[line.end..], true));
    }
    let mut start = line.start;
    let mut head = None;
    for above in whole[..line.start].split_inclusive('\n').rev() {
        start -= above.len();
        if begins(above) {
            head = Some(above);
            break;
        }
    }
    let Some(head) = head else { return everything() };
    let first = whole[start + head.len()..].lines().find(|line| is_content(line));
    let Some(column) = first.filter(|_| opens(head)).map(indent).filter(|column| *column > 0) else {
        return everything();
    };
    // The key of the section that contains the line; a line that may begin a key is in none.
    let under = indent(current) > column || !is_content(current);
    let mut own = line.start;
    if under {
        for above in whole[start + head.len()..line.start].split_inclusive('\n').rev() {
            own -= above.len();
            if is_content(above) && indent(above) <= column {
                break;
            }
        }
    }
    let mut kept = String::new();
    let mut at = start + head.len();
    let mut dropping = false;
    for line in whole[at..own].split_inclusive('\n') {
        at += line.len();
        if is_content(line) && indent(line) <= column {
            dropping = opens(line);
            kept.push_str(line);
        } else if !dropping {
            kept.push_str(line);
        }
    }
    let above = format!("{}{head}{kept}{}", &whole[..start], &whole[at..line.start]);
    let mut below = String::new();
    let mut at = line.end;
    let mut dropping = false;
    let mut in_own = true;
    for line in whole[line.end..].split_inclusive('\n') {
        if begins(line) {
            break;
        }
        at += line.len();
        if is_content(line) && indent(line) <= column {
            in_own = false;
            dropping = opens(line);
            below.push_str(line);
        } else if in_own || !dropping {
            below.push_str(line);
        }
    }
    below.push_str(&whole[at..]);
    (above, below)
}

/// Lines without what is under the keys of the first column; lines before the first of them are kept if they belong
/// to the line above.
fn heads(lines: &str, keep_first: bool) -> String {
    let mut dropping = !keep_first && lines.starts_with(char::is_whitespace);
    let mut kept = String::new();
    for line in lines.split_inclusive('\n') {
        if begins(line) {
            dropping = opens(line);
        }
        if begins(line) || !dropping {
            kept.push_str(line);
        }
    }
    kept
}

/// The lines that lead to a line by their indentation, without the values of their keys; and the number of bytes
/// removed above.
pub(super) fn lines_above(text: &Text, start: usize, before: &str) -> (String, usize) {
    let mut indent = before.len() - before.trim_start().len();
    let mut kept: Vec<&str> = vec![];
    for line in text.as_str()[..start].lines().rev() {
        let depth = line.len() - line.trim_start().len();
        let content = line.trim();
        let ends_open = content.split(" #").next().unwrap_or_default().trim_end().ends_with(':');
        if content.is_empty() || content.starts_with('#') || depth >= indent || !ends_open {
            continue;
        }
        indent = depth;
        kept.push(line);
    }
    let above: String = kept.iter().rev().map(|line| format!("{line}\n")).collect();
    let moved = start - above.len().min(start);
    (above, moved)
}

/// Whether a line begins a section: a key in the first column.
fn begins(line: &str) -> bool {
    line.starts_with(|c: char| !c.is_whitespace() && !matches!(c, '#' | '-' | '}' | ']'))
}

/// Whether a line ends in the colon of a key whose value is below it.
fn opens(line: &str) -> bool {
    line.split(" #").next().unwrap_or_default().trim_end().ends_with(':')
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn is_content(line: &str) -> bool {
    !line.trim().is_empty() && !line.trim_start().starts_with('#')
}
