//! The position of the cursor in an incomplete text: the path of keys, and whether a key or a value is expected.
//!
//! The text is parsed with a mark at the cursor, once as a key and once as a value, without roles that do not contain
//! the cursor, since they do not affect the result. If that fails, the text after
//! the cursor is omitted. If that fails too, only the lines that lead to the cursor by their indentation are
//! kept.

mod context_lines;
mod json;

use std::ops::Range;

use camino::Utf8Path;
use jobc_compiler::document::{Document, Node, Value};

use crate::analysis::parse_alone;
use crate::text::Text;
use crate::tree::is_json;

use context_lines::{context_lines, lines_above};

/// A private-use character, which is never typed.
pub(super) const MARK: char = '\u{e0f3}';

/// What stands on the line of a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beside {
    /// Nothing: a whole block can begin.
    Nothing,
    /// Its key, or other entries in brackets.
    Entries,
    /// A line of a text of several lines, such as a script.
    Text,
}

/// A place where text can be inserted.
#[derive(Debug)]
pub(super) struct Cursor {
    /// Keys and indexes from the root to the map or list of a key, or to a value.
    pub(super) path: Vec<String>,
    /// Whether a key of a map is expected.
    pub(super) is_key: bool,
    /// Whether a `:` already follows.
    pub(super) has_colon: bool,
    /// What stands on its line.
    pub(super) beside: Beside,
    /// The word to replace.
    pub(super) replace: Range<usize>,
    /// The existing keys of the map, or the strings of the list.
    pub(super) taken: Vec<String>,
    /// The tree of the path, with the mark.
    pub(super) document: Document,
}

impl Cursor {
    /// Whether it is alone on its line, where a whole block can begin.
    pub(super) fn on_own_line(&self) -> bool {
        self.beside == Beside::Nothing
    }
}

impl Beside {
    /// What stands before an offset of a text, on its line.
    fn of(text: &str, start: usize) -> Self {
        let line = text[..start].rsplit('\n').next().unwrap_or_default();
        if line.trim().is_empty() { Self::Nothing } else { Self::Entries }
    }
}

/// The possible places of the cursor; several if a list item may become a map.
pub(super) fn find(path: Option<&Utf8Path>, text: &Text, offset: usize) -> Vec<Cursor> {
    let line = text.line(text.line_of(offset));
    let whole = text.as_str();
    let offset = offset.min(whole.len());
    if is_json(path, whole) {
        return json::find(path, whole, offset);
    }
    let before = &whole[line.start..offset.max(line.start)];
    let rest = &whole[offset.min(line.end)..line.end];
    let (above, below) = context_lines(whole, line.clone());
    let moved = line.start - above.len();
    for below in [&below, "\n"] {
        let found = parsed(path, &above, before, rest, below, offset, moved);
        if !found.is_empty() {
            return found;
        }
    }
    let (above, moved) = lines_above(text, line.start, before);
    parsed(path, &above, before, rest, "\n", offset, moved)
}

/// Tries the marks with one selection of the surrounding lines; `moved` is the number of bytes removed above.
fn parsed(
    path: Option<&Utf8Path>,
    above: &str,
    before: &str,
    rest: &str,
    below: &str,
    offset: usize,
    moved: usize,
) -> Vec<Cursor> {
    let mut found: Vec<Cursor> = vec![];
    let closing = closing(before, rest);
    let key = if rest.trim_start().starts_with(':') { String::new() } else { ":".to_owned() };
    for (mark, closing) in [
        (format!("{MARK}{key}"), ""),
        (format!("{MARK}{key}"), &closing),
        (MARK.to_string(), ""),
        (MARK.to_string(), &closing),
    ] {
        // Closing brackets for this line; a text that parses without them does not need them.
        if !closing.is_empty() && mark.ends_with(':') && found.iter().any(|cursor| cursor.is_key) {
            continue;
        }
        let tried = format!("{above}{before}{mark}{rest}{closing}{below}");
        let Some(document) = parse_alone(path, &tried) else { continue };
        let at = above.len() + before.len();
        let mut steps = vec![];
        if let Some(cursor) = marked(&document.root, &mut steps, &tried, at)
            && !found.iter().any(|known| known.is_key == cursor.is_key && known.path == cursor.path)
        {
            let start = cursor.replace.start + moved;
            found.push(Cursor { replace: start..offset, document, ..cursor });
        }
    }
    found
}

/// Finds the mark below a node.
fn marked(node: &Node, path: &mut Vec<String>, text: &str, at: usize) -> Option<Cursor> {
    let cursor = |path: &[String], is_key, has_colon, start, taken| Cursor {
        path: path.to_vec(),
        is_key,
        has_colon,
        beside: Beside::of(text, start),
        replace: start..at,
        taken,
        document: Document { root: Node { span: node.span, value: Value::Null } },
    };
    match &node.value {
        Value::Mapping(entries) => {
            let others = || entries.iter().map(|e| e.key.clone()).filter(|key| !key.contains(MARK)).collect();
            for entry in entries {
                if entry.key.contains(MARK) {
                    let start = unquoted(text, entry.key_span.start as usize);
                    let colon = text.get(at + MARK.len_utf8()..entry.value.span.start as usize);
                    let has_colon = colon.is_some_and(|between| between.len() > 1);
                    return Some(cursor(path, true, has_colon, start, others()));
                }
                path.push(entry.key.clone());
                if let Some(found) = marked(&entry.value, path, text, at) {
                    return Some(found);
                }
                path.pop();
            }
            None
        }
        Value::Sequence(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push(index.to_string());
                if let Some(mut found) = marked(item, path, text, at) {
                    if found.path == *path && !found.is_key {
                        found.taken = items
                            .iter()
                            .filter_map(Node::as_str)
                            .filter(|it| !it.contains(MARK))
                            .map(str::to_owned)
                            .collect();
                    }
                    return Some(found);
                }
                path.pop();
            }
            None
        }
        Value::String(value) => {
            let typed = &value[..value.find(MARK)?];
            let start = unquoted(text, node.span.start as usize);
            // Of a text of several lines, only expressions and variables are completed.
            let whole = text.get(start..at).is_some_and(|raw| raw == typed);
            let start = if whole { start } else { at };
            let found = cursor(path, false, false, start, vec![]);
            Some(if whole { found } else { Cursor { beside: Beside::Text, ..found } })
        }
        _ => None,
    }
}

/// The offset after a quote, if there is one.
fn unquoted(text: &str, start: usize) -> usize {
    start + usize::from(text.as_bytes().get(start).is_some_and(|byte| matches!(byte, b'"' | b'\'')))
}

/// The characters that close the expression, the quote and the brackets of an incomplete line.
fn closing(before: &str, rest: &str) -> String {
    let mut open: Vec<char> = vec![];
    let mut quote = None;
    let mut previous = ' ';
    let mut expression = false;
    for c in before.chars() {
        match quote {
            Some(mark) if c == mark => quote = None,
            Some(_) => {}
            None => match c {
                '"' | '\'' if !previous.is_alphanumeric() => quote = Some(c),
                '{' | '[' => open.push(if c == '{' { '}' } else { ']' }),
                '}' | ']' => _ = open.pop(),
                '#' if previous == ' ' => break,
                _ => {}
            },
        }
        previous = c;
    }
    if let Some((_, code)) = before.rsplit_once("${{") {
        expression = !code.contains("}}") && !rest.contains("}}");
    }
    let mut closing = String::new();
    if expression {
        closing.push_str(" }}");
        // The two braces of the expression are not those of a map.
        if quote.is_none() {
            open.truncate(open.len().saturating_sub(2));
        }
    }
    closing.extend(quote.filter(|quote| !rest.contains(*quote)));
    let there = rest.chars().filter(|c| matches!(c, '}' | ']')).count();
    closing.extend(open.into_iter().rev().skip(there));
    closing
}
