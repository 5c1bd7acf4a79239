//! Quotes: none if the text needs none, else double quotes, unless that would need escapes.

use super::lines::Lines;
use crate::document::{Document, Node, Value};

/// The text with canonical quotes.
pub(super) fn forms(text: &str, document: &Document) -> Vec<String> {
    let lines = Lines::new(text);
    let mut changes = vec![];
    visit(&document.root, &lines, &mut changes);
    let mut out = text.to_owned();
    for (range, new) in changes.into_iter().rev() {
        out.replace_range(range, &new);
    }
    vec![out]
}

/// Collects the replacements, in source order.
fn visit(node: &Node, text: &Lines<'_>, changes: &mut Vec<(std::ops::Range<usize>, String)>) {
    for entry in node.entries() {
        visit(&entry.value, text, changes);
    }
    for item in node.items() {
        visit(item, text, changes);
    }
    let Value::String(value) = &node.value else { return };
    let written = text.as_str().get(node.span.range()).unwrap_or_default();
    if written.contains('\n') || !written.starts_with(['\'', '"']) {
        return;
    }
    let new = if is_plain(value) {
        value.clone()
    } else if written.starts_with('\'') && !value.contains(['"', '\\']) && !value.contains(char::is_control) {
        format!("\"{value}\"")
    } else {
        return;
    };
    if new != written {
        changes.push((node.span.range(), new));
    }
}

/// Whether a text consists of words that mean the same without quotes, in YAML 1.1 too.
///
/// A text that begins with a digit or a sign may be read as a number, a time or a date, and punctuation is easier
/// to read in quotes: such texts keep their quotes.
fn is_plain(value: &str) -> bool {
    const KEYWORDS: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+');
    value.starts_with(|c: char| c.is_alphabetic() || matches!(c, '/' | '_'))
        && !KEYWORDS.contains(&value.to_ascii_lowercase().as_str())
        && value.chars().all(|c| c == ' ' || is_word(c))
        && !value.ends_with(' ')
}
