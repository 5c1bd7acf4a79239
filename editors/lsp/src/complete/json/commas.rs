//! The commas around an entry in JSON, found from its tokens: a text that is being typed rarely parses.

use std::ops::Range;

/// The commas that a new entry at a position needs.
#[derive(Debug, Default)]
pub(in crate::complete) struct Commas {
    /// The end of the previous value, if no comma follows it.
    pub(in crate::complete) before: Option<usize>,
    /// The text after the entry.
    pub(in crate::complete) after: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Open(bool),
    Close,
    Colon,
    Comma,
    /// A string, and whether its closing quote is present.
    String(bool),
    Word,
    Comment,
}

/// One object or list around the cursor.
struct Level {
    is_object: bool,
    /// Whether a value comes next: after a colon, or in a list.
    at_value: bool,
    /// The end of the value, once it is present.
    ended: Option<usize>,
}

/// The commas for an entry at an offset; none in a comment, or after a key or a value on its line.
pub(in crate::complete) fn commas(text: &str, offset: usize) -> Commas {
    let tokens = tokens(text);
    let inside = |(kind, range): &(Kind, Range<usize>)| match kind {
        Kind::String(closed) => range.start < offset && offset < range.end + usize::from(!closed),
        Kind::Word => range.start < offset && offset <= range.end,
        _ => false,
    };
    let current = tokens.iter().find(|token| inside(token)).map(|(_, range)| range.clone());
    let place = current.unwrap_or(offset..offset);
    let code = |(kind, _): &&(Kind, Range<usize>)| *kind != Kind::Comment;
    let before = tokens.iter().filter(code).take_while(|(_, range)| range.end <= place.start);
    let Some(level) = levels(before).pop() else { return Commas::default() };
    let next = tokens.iter().filter(code).find(|(_, range)| range.start >= place.end);
    let follows = matches!(next, Some((Kind::String(_) | Kind::Word | Kind::Open(_), _)));
    let on_another_line = |end: &usize| text[*end..place.start].contains('\n');
    Commas { before: level.ended.filter(on_another_line), after: if follows { "," } else { "" } }
}

/// The objects and lists that are open after some tokens.
fn levels<'a>(tokens: impl Iterator<Item = &'a (Kind, Range<usize>)>) -> Vec<Level> {
    let mut levels: Vec<Level> = vec![];
    for (kind, range) in tokens {
        match (kind, levels.last_mut()) {
            (Kind::Open(is_object), _) => {
                levels.push(Level { is_object: *is_object, at_value: !is_object, ended: None });
            }
            (Kind::Close, Some(_)) => {
                levels.pop();
                if let Some(above) = levels.last_mut() {
                    above.ended = Some(range.end);
                }
            }
            (Kind::Colon, Some(level)) if level.is_object => (level.at_value, level.ended) = (true, None),
            (Kind::Comma, Some(level)) => (level.at_value, level.ended) = (!level.is_object, None),
            (Kind::String(_) | Kind::Word, Some(level)) if level.at_value && level.ended.is_none() => {
                level.ended = Some(range.end);
            }
            _ => {}
        }
    }
    levels
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

#[cfg(test)]
mod tests {
    use super::commas;

    #[test]
    fn an_entry_gets_the_commas_it_needs() {
        let check = |text: &str, before: Option<usize>, after: &str| {
            let offset = text.find('|').expect("a cursor");
            let found = commas(&text.replacen('|', "", 1), offset);
            assert_eq!((found.before, found.after), (before, after), "{text}");
        };
        check("{|}", None, "");
        check("{\"a\": 1,\n|}", None, "");
        check("{\"a\": 1\n|}", Some(7), "");
        check("{\"a\": {\"b\": [1]}\n\"c|\"}", Some(16), "");
        check("{|\n\"a\": 1}", None, ",");
        check("{\"b|\"\n\"a\": 1}", None, ",");
        check("{\"a\": 1 |}", None, "");
        check("{\"a\": [\"x\"\n|]}", Some(10), "");
        check("{\"a\": 1 // more\n|}", Some(7), "");
        check("|", None, "");
    }
}
