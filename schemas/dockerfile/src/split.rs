//! Splits an instruction into words, flags, and JSON arrays.

use super::line::Part;

/// Splits at blanks; quotes have no meaning.
pub(super) fn by_blanks(part: Part<'_>) -> Vec<Part<'_>> {
    let mut words = Vec::new();
    let mut rest = part.trim();
    while !rest.is_empty() {
        let (word, after) = rest.split_first();
        words.push(word);
        rest = after;
    }
    words
}

/// Splits at unquoted blanks; the quotes are kept.
pub(super) fn by_quotes(part: Part<'_>, escape: char) -> Vec<Part<'_>> {
    let mut words = Vec::new();
    let mut start = None;
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in part.text().char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (None, c) if c.is_whitespace() => {
                words.extend(start.take().map(|start| part.slice(start, at)));
                continue;
            }
            (None | Some('"'), c) if c == escape => escaped = true,
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            _ => {}
        }
        start.get_or_insert(at);
    }
    words.extend(start.map(|start| part.slice(start, part.text().len())));
    words
}

/// Splits at blanks as a shell does, with `<< NAME` as one word; `None` if a quote is not closed.
pub(super) fn raw(part: Part<'_>) -> Option<Vec<Part<'_>>> {
    let text = part.text();
    let mut words = Vec::new();
    let mut start = None;
    let mut quote = None;
    let mut rest = text.char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        match (quote, c) {
            (None, c) if c.is_whitespace() => {
                words.extend(start.take().map(|start| part.slice(start, at)));
                continue;
            }
            (None | Some('"'), '\\') => {
                rest.next();
            }
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (None, '<') if rest.next_if(|(_, c)| *c == '<').is_some() => {
                rest.next_if(|(_, c)| *c == '-');
                while rest.next_if(|(_, c)| matches!(c, ' ' | '\t')).is_some() {}
            }
            _ => {}
        }
        start.get_or_insert(at);
    }
    words.extend(start.map(|start| part.slice(start, text.len())));
    quote.is_none().then_some(words)
}

/// A heredoc's name without its quotes; `None` if it is more than one word or a quote is not closed.
pub(super) fn unquoted(text: &str) -> Option<String> {
    let mut name = String::new();
    let mut quote = None;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match (quote, c) {
            (None, c) if c.is_whitespace() => return None,
            (None | Some('"'), '\\') => name.extend(rest.next()),
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (_, c) => name.push(c),
        }
    }
    quote.is_none().then_some(name)
}

/// A flag: `--name` or `--name=value`.
#[derive(Clone, Debug)]
pub(super) struct Flag<'a> {
    /// As written.
    pub(super) part: Part<'a>,
    pub(super) name: String,
    /// Without quotes and escapes.
    pub(super) value: Option<String>,
    /// The value as written.
    pub(super) value_part: Part<'a>,
}

/// The leading flags, and the text after them. A single `--` ends them.
pub(super) fn flags(part: Part<'_>) -> (Vec<Flag<'_>>, Part<'_>) {
    let mut flags = Vec::new();
    let mut rest = part.trim();
    while rest.text().starts_with("--") {
        let (end, text) = flag_end(rest.text());
        let written = rest.slice(0, end);
        rest = rest.slice(end, rest.text().len()).trim();
        if text == "--" {
            break;
        }
        let (name, value) = match text[2..].split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (text[2..].to_owned(), None),
        };
        let value_at = written.text().find('=').map_or(end, |at| at + 1);
        flags.push(Flag { part: written, name, value, value_part: written.slice(value_at, end) });
    }
    (flags, rest)
}

/// The end of a flag, and its text without quotes and escapes. The escape character of flags is always a backslash,
/// whatever `# escape=` says.
fn flag_end(text: &str) -> (usize, String) {
    let mut out = String::new();
    let mut quote = None;
    let mut rest = text.char_indices();
    while let Some((at, c)) = rest.next() {
        match (quote, c) {
            (None, c) if c.is_whitespace() => return (at, out),
            (_, '\\') => out.extend(rest.next().map(|(_, c)| c)),
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (_, c) => out.push(c),
        }
    }
    (text.len(), out)
}

/// The strings of a JSON array, or an error if it has other items; `None` if the text is not a JSON array.
pub(super) fn json(part: Part<'_>) -> Option<Result<Vec<String>, ()>> {
    if !part.text().starts_with('[') {
        return None;
    }
    let items: Vec<serde_json::Value> = serde_json::from_str(part.text()).ok()?;
    let string = |item| match item {
        serde_json::Value::String(text) => Ok(text),
        _ => Err(()),
    };
    Some(items.into_iter().map(string).collect())
}
