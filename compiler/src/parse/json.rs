//! Parses JSON text, with comments, into a tree.
//!
//! Most mistakes in hand-written JSON are unambiguous: a trailing comma, single quotes, a key without quotes. They are
//! reported with a fix, and parsing continues.

mod blank;
mod number;
mod string;

use crate::diagnostic::{Code, Diagnostic, Location, Safety, codes};
use crate::document::{Entry, Node, Value};

use super::keys::{Keys, shorten};
use super::limits::MAX_DEPTH;
use super::report::Report;

pub(super) use blank::is_not_yaml;

/// Parses a JSON text; `None` if it is too broken to guess, or empty.
pub(super) fn load(text: &str, report: &mut Report<'_>) -> Option<Node> {
    let at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut loader = Loader { text, at, depth: 0, report };
    loader.blank()?;
    if loader.peek().is_none() {
        loader.report.empty(text);
        return None;
    }
    let word = loader.run(|c| c.is_alphanumeric() || c == '-' || c == '_');
    let keyed = word > loader.at && text[word..].trim_start().starts_with(':');
    if keyed || text[loader.at..].starts_with("- ") {
        loader.stop("this is YAML in a file that should hold JSON: name it `.yaml`", "");
        return None;
    }
    let root = loader.value()?;
    loader.blank()?;
    loader.end();
    if root.value == Value::Null {
        loader.report.empty(text);
        return None;
    }
    Some(root)
}

/// Parses one text; a method that returns `None` has reported an error that ends parsing.
struct Loader<'t, 'r, 's> {
    text: &'t str,
    at: usize,
    depth: usize,
    report: &'r mut Report<'s>,
}

/// The text between two entries.
enum Separator {
    /// Another entry follows.
    Entry,
    /// The closing bracket, which is consumed.
    End,
}

impl Loader<'_, '_, '_> {
    fn value(&mut self) -> Option<Node> {
        let start = self.at;
        let value = match self.peek() {
            Some('{') => self.nested(Self::map)?,
            Some('[') => self.nested(Self::list)?,
            Some('"' | '\'' | '“' | '”' | '‘' | '’') => Value::String(self.string()?),
            Some(c) if c.is_ascii_digit() || matches!(c, '-' | '+' | '.') => self.number(),
            Some(c) if c.is_alphabetic() || c == '_' => self.word(),
            Some(c) => {
                self.stop(format!("`{c}` cannot begin a JSON value"), "");
                return None;
            }
            None => {
                self.stop("a value is missing at the end of the text", "");
                return None;
            }
        };
        Some(Node { span: self.report.span(start, self.at), value })
    }

    fn nested(&mut self, read: fn(&mut Self, usize) -> Option<Value>) -> Option<Value> {
        let start = self.at;
        if self.depth >= MAX_DEPTH {
            let message = format!("lists and maps nest deeper than {MAX_DEPTH} levels");
            let span = self.report.span(start, start + 1);
            self.report.push(Diagnostic::error(codes::LIMIT, message).at_span(span, "this one is too deep"));
            return None;
        }
        self.depth += 1;
        self.at += 1;
        let value = read(self, start);
        self.depth -= 1;
        value
    }

    fn list(&mut self, start: usize) -> Option<Value> {
        let mut items: Vec<Node> = vec![];
        let mut comma = None;
        while let Separator::Entry = self.next(start, ']', comma)? {
            items.push(self.value()?);
            comma = self.separator(items.last().map_or(start, |item| item.span.end as usize))?;
        }
        Some(Value::Sequence(items))
    }

    fn map(&mut self, start: usize) -> Option<Value> {
        let mut entries: Vec<Entry> = vec![];
        let mut keys = Keys::default();
        let mut comma = None;
        while let Separator::Entry = self.next(start, '}', comma)? {
            let key_start = self.at;
            let key = self.key()?;
            let key_span = self.report.span(key_start, self.at);
            let value = self.value_of(&key)?;
            let end = value.span.end as usize;
            if !keys.twice(&entries, &key, key_span, self.report) {
                entries.push(Entry { key, key_span, value });
            }
            comma = self.separator(end)?;
        }
        Some(Value::Mapping(entries))
    }

    /// Finds the next entry or the closing bracket; `comma` is the position of the comma before it.
    fn next(&mut self, start: usize, close: char, mut comma: Option<usize>) -> Option<Separator> {
        loop {
            let elided = self.blank()?;
            match self.peek() {
                Some(c) if c == close => {
                    // The comma before a mark for omitted text is removed with the mark.
                    if let Some(comma) = comma.filter(|_| !elided) {
                        self.trailing_comma(comma);
                    }
                    self.at += 1;
                    return Some(Separator::End);
                }
                Some(',') => {
                    if !elided {
                        let cut = self.report.span(self.at, self.at + 1);
                        self.spelling("expected a value, found a comma: remove it", cut, "");
                    }
                    comma = Some(self.at);
                    self.at += 1;
                }
                Some(c @ (']' | '}')) => {
                    let open = self.text[start..].chars().next().unwrap_or('[');
                    let message = format!("`{open}` is closed by `{c}`");
                    let (here, opened) = (self.here(), self.report.span(start, start + 1));
                    self.report.push(
                        Diagnostic::error(codes::UNCLOSED, message)
                            .at_span(here, "")
                            .at_span(opened, "opened here"),
                    );
                    return None;
                }
                Some(_) => return Some(Separator::Entry),
                None => {
                    let open = self.text[start..].chars().next().unwrap_or('[');
                    let message = format!("the bracket `{open}` is not closed");
                    let opened = self.report.span(start, start + 1);
                    self.report
                        .push(Diagnostic::error(codes::UNCLOSED, message).at_span(opened, "opened here"));
                    return None;
                }
            }
        }
    }

    /// Consumes the comma after a value, if there is one; reports one that is missing between two values.
    #[expect(clippy::option_option, reason = "the outer one means that reading stops, the inner one a comma")]
    fn separator(&mut self, end: usize) -> Option<Option<usize>> {
        let elided = self.blank()?;
        match self.peek() {
            Some(',') => {
                self.at += 1;
                Some(Some(self.at - 1))
            }
            Some('}' | ']') | None => Some(None),
            Some(c) if elided || c == '"' || c == '\'' || c == '{' || c == '[' || c.is_alphanumeric() => {
                if !elided {
                    let insert = self.report.span(end, end);
                    self.spelling("a comma is missing between two entries", insert, ",");
                }
                Some(None)
            }
            Some(c) => {
                self.stop(format!("expected a comma or a closing bracket, found `{c}`"), "");
                None
            }
        }
    }

    fn key(&mut self) -> Option<String> {
        let start = self.at;
        match self.peek() {
            Some('"' | '\'' | '“' | '”' | '‘' | '’') => self.string(),
            Some(c) if c.is_alphanumeric() || matches!(c, '_' | '$' | '-') => {
                let end = self.run(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | '-' | '.' | '/'));
                let key = self.text[start..end].to_owned();
                let span = self.report.span(start, end);
                let quoted = format!("\"{key}\"");
                self.spelling(&format!("a key must be quoted: write `{}`", shorten(&quoted)), span, &quoted);
                self.at = end;
                Some(key)
            }
            _ => {
                self.stop("expected a quoted key", "expected `\"key\": value`");
                None
            }
        }
    }

    fn value_of(&mut self, key: &str) -> Option<Node> {
        self.blank()?;
        if self.peek() != Some(':') {
            self.stop(format!("a colon must follow the key `{}`", shorten(key)), "expected `:`");
            return None;
        }
        self.at += 1;
        let elided = self.blank()?;
        if matches!(self.peek(), Some(',' | '}' | ']')) {
            let here = self.report.span(self.at, self.at);
            if !elided {
                let message = format!("the key `{}` has no value", shorten(key));
                self.report
                    .push(Diagnostic::error(codes::SYNTAX, message).at_span(self.here(), "expected a value"));
            }
            return Some(Node { span: here, value: Value::Null });
        }
        self.value()
    }

    /// Parses `true`, `false`, `null`, or a word that is misspelled or lacks quotes.
    fn word(&mut self) -> Value {
        let start = self.at;
        self.at = self.run(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/'));
        let word = &self.text[start..self.at];
        let span = self.report.span(start, self.at);
        let (value, json) = match word {
            "true" => return Value::Bool(true),
            "false" => return Value::Bool(false),
            "null" => return Value::Null,
            "True" | "TRUE" => (Value::Bool(true), "true".to_owned()),
            "False" | "FALSE" => (Value::Bool(false), "false".to_owned()),
            "None" | "Null" | "NULL" | "nil" | "undefined" => (Value::Null, "null".to_owned()),
            _ => (Value::String(word.to_owned()), format!("\"{word}\"")),
        };
        let message = format!("`{}` is not JSON: write `{}`", shorten(word), shorten(&json));
        self.spelling(&message, span, &json);
        value
    }

    /// Reports text after the root value.
    fn end(&mut self) {
        let Some(next) = self.peek() else { return };
        let (code, message) = match next {
            '{' | '[' => (codes::SEVERAL_DOCUMENTS, "the file contains more than one document"),
            '}' | ']' => (codes::SYNTAX, "unmatched closing bracket: remove it"),
            _ => (codes::SYNTAX, "unexpected text after the end of the value"),
        };
        let here = self.here();
        self.report.push(Diagnostic::error(code, message).at_span(here, ""));
    }

    fn trailing_comma(&mut self, comma: usize) {
        let cut = self.report.span(comma, comma + 1);
        self.spelling("trailing comma: remove it", cut, "");
    }

    /// Reports a spelling that is not JSON, with the correct one.
    fn spelling(&mut self, message: &str, span: crate::source::Span, instead: &str) {
        self.report_fixable(codes::JSON_SPELLING, message, span, instead);
    }

    fn report_fixable(&mut self, code: Code, message: &str, span: crate::source::Span, instead: &str) {
        if !self.report.wants(code, span) {
            return;
        }
        let what = match (span.start == span.end, instead.is_empty()) {
            (_, true) => "remove it".to_owned(),
            (true, false) => format!("put in `{}`", shorten(instead)),
            (false, false) => format!("write `{}`", shorten(instead)),
        };
        self.report.push(Diagnostic::error(code, message).at_span(span, "").fix(
            what,
            Location::Span(span),
            instead,
            Safety::Safe,
        ));
    }

    /// Reports an error that ends parsing.
    fn stop(&mut self, message: impl Into<String>, label: &str) {
        let here = self.here();
        self.report.push(Diagnostic::error(codes::SYNTAX, message).at_span(here, label));
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    /// The end of the run of such characters from here.
    fn run(&self, belongs: impl Fn(char) -> bool) -> usize {
        let rest = &self.text[self.at..];
        self.at + rest.find(|c| !belongs(c)).unwrap_or(rest.len())
    }

    /// The next character; the last one at the end of the text.
    fn here(&self) -> crate::source::Span {
        let length = self.peek().map_or(0, char::len_utf8);
        self.report.span(self.at, self.at + length)
    }
}
