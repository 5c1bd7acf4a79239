//! The names that an expression uses, found without evaluating it.
//!
//! Expressions cannot define variables, so every name that is not after a `.`, a `|` or an `is`, and is not
//! called, is looked up in the scopes. Finding them first lets a message point at the name itself.

use std::ops::Range;

use super::scopes::Scope;

/// A name and the steps after it: `hosts.train[0]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// Its byte range in the code.
    pub range: Range<usize>,
    /// The name and the literal steps after it.
    pub steps: Vec<Step>,
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its byte range in the code.
    pub range: Range<usize>,
    /// The key, or the index of an item.
    pub key: Key,
}

/// The key of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// A name, as `.name` or `["name"]`.
    Name(String),
    /// An item of a list, as `[0]`.
    Item(usize),
}

impl Path {
    /// The first name.
    pub fn root(&self) -> &str {
        self.name(0).unwrap_or_default()
    }

    /// The key of the step, if it is a name.
    pub fn name(&self, step: usize) -> Option<&str> {
        match self.steps.get(step).map(|step| &step.key) {
            Some(Key::Name(name)) => Some(name),
            _ => None,
        }
    }
}

/// Keywords of the expression language, which are not names.
const KEYWORDS: &[&str] =
    &["and", "or", "not", "in", "is", "if", "else", "true", "false", "none", "True", "False", "None"];

/// The paths of an expression in order.
///
/// Names after `hosts`, `roles`, `ports`, `data`, `outputs` and `secrets` may contain `-`: `hosts.data-server[0]`;
/// nothing there can be subtracted from. The same is true of the label in `ports.data-server.grpc-web`.
pub fn paths(code: &str) -> Vec<Path> {
    let mut found = Vec::new();
    let mut at = 0;
    // The token before the word: after `.`, `|` and `is` a word is not a name.
    let mut before = "";
    while let Some(c) = code[at..].chars().next() {
        if c == '"' || c == '\'' {
            at = string_end(code, at);
            before = "string";
        } else if starts_word(c) {
            let end = word_end(code, at, false);
            let word = &code[at..end];
            let called = next(code, end) == Some('(');
            let named = next(code, end) == Some('=') && !code[end..].trim_start().starts_with("==");
            if matches!(before, "." | "|" | "is") || called || named || KEYWORDS.contains(&word) {
                // `is not defined`: the test's name follows the `not`.
                before = if before == "is" && word == "not" { "is" } else { word };
                at = end;
            } else {
                let path = path(code, at, end);
                at = path.range.end;
                found.push(path);
                before = "name";
            }
        } else if c.is_ascii_digit() {
            at = code[at..]
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '.')
                .map_or(code.len(), |n| at + n);
            before = "number";
        } else {
            if !c.is_whitespace() {
                before = match c {
                    '.' => ".",
                    '|' => "|",
                    _ => "mark",
                };
            }
            at += c.len_utf8();
        }
    }
    found
}

/// The code with every name that contains a `-` rewritten as `["name"]`, which the engine can parse.
pub(super) fn quote_dashes(code: &str, paths: &[Path]) -> String {
    let mut out = String::with_capacity(code.len());
    let mut from = 0;
    for step in paths.iter().flat_map(|path| &path.steps) {
        let Key::Name(name) = &step.key else { continue };
        // A step in brackets is already a string; its range begins with the quote.
        if name.contains('-') && code[step.range.clone()] == **name {
            let dot = code[..step.range.start].rfind('.').unwrap_or(step.range.start);
            out.push_str(&code[from..dot]);
            out.push_str("[\"");
            out.push_str(name);
            out.push_str("\"]");
            from = step.range.end;
        }
    }
    out.push_str(&code[from..]);
    out
}

fn path(code: &str, start: usize, end: usize) -> Path {
    let root = &code[start..end];
    let dashes = match Scope::parse(root) {
        Some(Scope::Ports) => 2,
        Some(scope) if scope.names_may_have_dashes() => 1,
        _ => 0,
    };
    let mut steps = vec![Step { range: start..end, key: Key::Name(root.to_owned()) }];
    let mut at = end;
    loop {
        let skipped = code[at..].len() - code[at..].trim_start().len();
        let mark = at + skipped;
        match code[mark..].chars().next() {
            Some('.') => {
                let from = mark + 1 + (code[mark + 1..].len() - code[mark + 1..].trim_start().len());
                if !code[from..].starts_with(starts_word) {
                    break;
                }
                let to = word_end(code, from, steps.len() <= dashes);
                if next(code, to) == Some('(') {
                    break;
                }
                steps.push(Step { range: from..to, key: Key::Name(code[from..to].to_owned()) });
                at = to;
            }
            Some('[') => {
                let Some((key, range, after)) = bracket(code, mark) else { break };
                steps.push(Step { range, key });
                at = after;
            }
            _ => break,
        }
    }
    Path { range: start..at, steps }
}

/// Parses a `["name"]` or `[0]` at `open`; a computed index ends the path.
fn bracket(code: &str, open: usize) -> Option<(Key, Range<usize>, usize)> {
    let close = if code[open + 1..].trim_start().starts_with(['"', '\'']) {
        let quote = open + 1 + (code[open + 1..].len() - code[open + 1..].trim_start().len());
        let end = string_end(code, quote);
        end + code[end..].find(|c: char| !c.is_whitespace())?
    } else {
        open + code[open..].find(']')?
    };
    if !code[close..].starts_with(']') {
        return None;
    }
    let inner = &code[open + 1..close];
    let start = open + 1 + (inner.len() - inner.trim_start().len());
    let inner = inner.trim();
    let key = match inner.strip_prefix(['"', '\'']) {
        Some(rest) if !rest.contains('\\') => Key::Name(rest.get(..rest.len().checked_sub(1)?)?.to_owned()),
        Some(_) => return None,
        None => Key::Item(inner.parse().ok()?),
    };
    Some((key, start..start + inner.len(), close + 1))
}

fn starts_word(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

fn word_end(code: &str, start: usize, dashes: bool) -> usize {
    let mut end = start;
    for (offset, c) in code[start..].char_indices() {
        let rest = &code[start + offset + c.len_utf8()..];
        let inside = c == '-' && dashes && rest.starts_with(|c: char| c.is_alphanumeric() || c == '-');
        if !(c.is_alphanumeric() || c == '_' || inside) {
            break;
        }
        end = start + offset + c.len_utf8();
    }
    end
}

fn string_end(code: &str, quote: usize) -> usize {
    let mut chars = code[quote..].char_indices();
    let Some((_, open)) = chars.next() else { return code.len() };
    while let Some((offset, c)) = chars.next() {
        if c == '\\' {
            chars.next();
        } else if c == open {
            return quote + offset + c.len_utf8();
        }
    }
    code.len()
}

fn next(code: &str, at: usize) -> Option<char> {
    code[at..].trim_start().chars().next()
}
