//! The tokens of JSON that need not be complete, and the cursor's place among them.

use std::ops::Range;

use lsp_types::CompletionItemKind;
use serde_json::Value;

use crate::complete::item::Item;
use crate::complete::snippet;

/// A place where text can be inserted.
#[derive(Debug, Default)]
pub(super) struct Spot {
    /// Keys and indexes from the root to the object of a key, or to a value.
    pub(super) path: Vec<String>,
    /// Whether a key is expected.
    pub(super) is_key: bool,
    /// Whether a `:` already follows.
    pub(super) has_colon: bool,
    /// Whether the cursor is inside quotes.
    pub(super) in_quotes: bool,
    /// The text that is replaced: inside the quotes, with the closing one.
    pub(super) replace: Range<usize>,
    /// The keys of the object.
    pub(super) taken: Vec<String>,
    /// The end of the value before, if no comma follows it.
    pub(super) comma_before: Option<usize>,
    /// The comma that what follows needs.
    pub(super) comma_after: &'static str,
    closing: &'static str,
}

impl Spot {
    /// A key with its value, in snippet syntax.
    pub(super) fn key(&self, key: &str, value: &str) -> String {
        let open = if self.in_quotes { "" } else { "\"" };
        let key = snippet::escaped(key);
        if self.has_colon {
            return format!("{open}{key}{}", if self.in_quotes { self.closing } else { "\"" });
        }
        format!("{open}{key}\": {value}{}", self.comma_after)
    }

    /// A value; none if it is no string, and quotes are there.
    pub(super) fn value(&self, value: &Value) -> Option<String> {
        let text = match value {
            Value::String(text) if self.in_quotes => format!("{}\"", snippet::escaped(text)),
            Value::String(_) | Value::Number(_) | Value::Bool(_) if !self.in_quotes => {
                snippet::escaped(&value.to_string())
            }
            _ => return None,
        };
        Some(format!("{text}{}", self.comma_after))
    }

    pub(super) fn item(&self, kind: CompletionItemKind, value: &Value, rank: u8) -> Option<Item> {
        let label = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Some(Item::new(kind, &label).insert(self.value(value)?).rank(rank))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Open(bool),
    Close,
    Colon,
    Comma,
    /// A string; whether its closing quote is there.
    String(bool),
    Word,
    Comment,
}

/// One object or list around the cursor.
struct Level {
    is_object: bool,
    keys: Vec<String>,
    index: usize,
    /// Whether a colon or, in a list, nothing is before the next value.
    at_value: bool,
    /// The end of the value, once it is there.
    ended: Option<usize>,
    last: String,
}

/// The place of an offset; none in a comment.
pub(super) fn spot(text: &str, offset: usize) -> Option<Spot> {
    let tokens = tokens(text);
    let inside = |(kind, range): &(Kind, Range<usize>)| match kind {
        Kind::String(closed) => range.start < offset && offset < range.end + usize::from(!closed),
        Kind::Word => range.start < offset && offset <= range.end,
        Kind::Comment => {
            range.start < offset && offset < range.end + usize::from(!text[range.clone()].ends_with("*/"))
        }
        _ => false,
    };
    let current = tokens.iter().find(|token| inside(token));
    if current.is_some_and(|(kind, _)| *kind == Kind::Comment) {
        return None;
    }
    let code = |(kind, _): &&(Kind, Range<usize>)| *kind != Kind::Comment;
    let start = current.map_or(offset, |(_, range)| range.start);
    let before = tokens.iter().filter(code).take_while(|(_, range)| range.end <= start);
    let after = || {
        let end = current.map_or(offset, |(_, range)| range.end);
        tokens.iter().filter(code).skip_while(move |(_, range)| range.start < end)
    };
    let levels = levels(text, before);
    let level = levels.last()?;
    let next = after().next().map(|(kind, _)| *kind);
    let line_ended = |end: usize| text[end..start].contains('\n');
    // After a whole value, only on another line is anything expected: the next key or item.
    let comma_before = level.ended.filter(|_| level.at_value);
    let key_without_colon = !level.last.is_empty();
    if key_without_colon || comma_before.is_some_and(|end| !line_ended(end)) {
        return None;
    }
    let is_key = level.is_object && (!level.at_value || comma_before.is_some());
    let mut path: Vec<String> = levels[..levels.len() - 1].iter().map(Level::step).collect();
    if !is_key {
        path.push(if comma_before.is_some() { (level.index + 1).to_string() } else { level.step() });
    }
    let in_quotes = matches!(current, Some((Kind::String(_), _)));
    let closed = matches!(current, Some((Kind::String(true), _)));
    let replace = match current {
        Some((_, range)) if in_quotes => range.start + 1..if closed { range.end } else { offset },
        Some((_, range)) => range.start..offset,
        None => offset..offset,
    };
    let follows = matches!(next, Some(Kind::String(_) | Kind::Word | Kind::Open(_)));
    let mut taken = level.keys.clone();
    taken.extend(keys_after(text, after()));
    Some(Spot {
        path,
        is_key,
        has_colon: next == Some(Kind::Colon),
        in_quotes,
        replace,
        taken,
        comma_before,
        comma_after: if follows { "," } else { "" },
        closing: if closed { "\"" } else { "" },
    })
}

impl Level {
    fn step(&self) -> String {
        if self.is_object { self.keys.last().cloned().unwrap_or_default() } else { self.index.to_string() }
    }
}

/// The objects and lists that are open after some tokens.
fn levels<'a>(text: &str, tokens: impl Iterator<Item = &'a (Kind, Range<usize>)>) -> Vec<Level> {
    let mut levels: Vec<Level> = vec![];
    for (kind, range) in tokens {
        match (kind, levels.last_mut()) {
            (Kind::Open(is_object), _) => levels.push(Level {
                is_object: *is_object,
                keys: vec![],
                index: 0,
                at_value: !is_object,
                ended: None,
                last: String::new(),
            }),
            (Kind::Close, Some(_)) => {
                levels.pop();
                if let Some(above) = levels.last_mut() {
                    above.ended = Some(range.end);
                }
            }
            (Kind::Colon, Some(level)) if level.is_object => {
                level.keys.push(std::mem::take(&mut level.last));
                (level.at_value, level.ended) = (true, None);
            }
            (Kind::Comma, Some(level)) => {
                level.index += 1;
                (level.at_value, level.ended) = (!level.is_object, None);
            }
            (Kind::String(_) | Kind::Word, Some(level)) if level.at_value && level.ended.is_none() => {
                level.ended = Some(range.end);
            }
            (Kind::String(_) | Kind::Word, Some(level)) => {
                text[range.clone()].trim_matches('"').clone_into(&mut level.last);
            }
            _ => {}
        }
    }
    levels
}

/// The keys of the object that the first of some tokens is in.
fn keys_after<'a>(text: &str, tokens: impl Iterator<Item = &'a (Kind, Range<usize>)>) -> Vec<String> {
    let mut depth = 0;
    let mut last = "";
    let mut keys = vec![];
    for (kind, range) in tokens {
        match kind {
            Kind::Open(_) => depth += 1,
            Kind::Close if depth == 0 => break,
            Kind::Close => depth -= 1,
            Kind::String(_) if depth == 0 => last = text[range.clone()].trim_matches('"'),
            Kind::Colon if depth == 0 && !last.is_empty() => keys.push(std::mem::take(&mut last).to_owned()),
            _ => {}
        }
    }
    keys
}

fn tokens(text: &str) -> Vec<(Kind, Range<usize>)> {
    let bytes = text.as_bytes();
    let mut tokens = vec![];
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let rest = &text[at..];
        let (kind, length) = match byte {
            b'{' | b'[' => (Kind::Open(byte == b'{'), 1),
            b'}' | b']' => (Kind::Close, 1),
            b':' => (Kind::Colon, 1),
            b',' => (Kind::Comma, 1),
            b'"' => string(rest),
            _ if rest.starts_with("//") => (Kind::Comment, rest.find('\n').unwrap_or(rest.len())),
            _ if rest.starts_with("/*") => (Kind::Comment, rest.find("*/").map_or(rest.len(), |end| end + 2)),
            _ => {
                let word = rest.find(|c: char| c.is_whitespace() || "{}[]:,\"".contains(c));
                let length = word.unwrap_or(rest.len());
                if length == 0 {
                    at += 1;
                    continue;
                }
                (Kind::Word, length)
            }
        };
        tokens.push((kind, at..at + length));
        at += length;
    }
    tokens
}

/// A string, up to its closing quote or the end of its line.
fn string(rest: &str) -> (Kind, usize) {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            '\n' => return (Kind::String(false), at),
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return (Kind::String(true), at + 1),
            _ => {}
        }
    }
    (Kind::String(false), rest.len())
}
