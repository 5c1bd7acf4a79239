//! Items in JSON, with quotes, whether or not some are already present.

mod commas;

use std::ops::Range;

use super::cursor::Cursor;
use super::item::Item;
use super::snippet;

pub(super) use commas::{Commas, commas};

/// The item and the range that it replaces, including existing quotes.
pub(super) fn quoted(item: Item, cursor: &Cursor, replace: Range<usize>, text: &str) -> (Item, Range<usize>) {
    let opened = text[..replace.start].ends_with('"');
    let rest = &text[replace.end..];
    let word = rest
        .find(|c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':')))
        .unwrap_or(rest.len());
    let closed = opened && rest[word..].starts_with('"');
    let mut replace = replace;
    if opened {
        replace.start -= 1;
    }
    if closed {
        replace.end += word + 1;
    }
    let is_value = matches!(item.insert.as_str(), "true" | "false") || item.insert.parse::<f64>().is_ok();
    let insert = match () {
        () if cursor.is_key && item.insert.starts_with('"') => item.insert.clone(),
        // In YAML, a name with the text that follows: its value is left to the user.
        () if cursor.is_key && !cursor.has_colon => format!("\"{}\": $0", snippet::escaped(&item.label)),
        () if item.insert.starts_with(['[', '"']) => {
            if item.insert.starts_with('[') {
                format!("[\"{}\"]", snippet::escaped(&item.label))
            } else {
                item.insert.clone()
            }
        }
        () if is_value => item.insert.clone(),
        () => format!("\"{}\"", snippet::escaped(&item.label)),
    };
    let filter = opened.then(|| format!("\"{}\"", item.label));
    (Item { insert, filter, ..item }, replace)
}
