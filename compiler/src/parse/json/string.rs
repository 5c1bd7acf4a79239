//! Strings: escapes, the wrong kinds of quotes, and line breaks inside.

use crate::diagnostic::{Diagnostic, Location, Safety, codes};

use super::blank::continuation;
use super::{Loader, shorten};

impl Loader<'_, '_, '_> {
    /// Parses a string from its opening quote on.
    pub(super) fn string(&mut self) -> Option<String> {
        let start = self.at;
        let quote = self.peek()?;
        let closing: &[char] = match quote {
            '\'' => &['\''],
            '“' | '”' => &['“', '”'],
            '‘' | '’' => &['‘', '’'],
            _ => &['"'],
        };
        self.at += quote.len_utf8();
        let mut out = String::new();
        let mut line_ends = vec![];
        loop {
            let end = self.run(|c| !closing.contains(&c) && !matches!(c, '\\' | '\n' | '\t'));
            out.push_str(&self.text[self.at..end]);
            self.at = end;
            match self.peek() {
                Some(c) if closing.contains(&c) => {
                    self.at += c.len_utf8();
                    break;
                }
                Some('\\') if quote != '"' && self.text[self.at + 1..].starts_with(closing) => {
                    out.push(quote);
                    self.at += 1 + quote.len_utf8();
                }
                Some('\\') => self.escape(&mut out),
                Some('\n') => {
                    if !self.closes_later(closing) {
                        return self.unclosed(start, quote);
                    }
                    line_ends.push(self.at);
                    out.push('\n');
                    self.at += 1;
                }
                Some(tab) => {
                    let span = self.report.span(self.at, self.at + 1);
                    self.spelling("write a tab inside a string as `\\t`", span, "\\t");
                    out.push(tab);
                    self.at += 1;
                }
                None => return self.unclosed(start, quote),
            }
        }
        for at in line_ends {
            let from = at - usize::from(self.text[..at].ends_with('\r'));
            let span = self.report.span(from, at + 1);
            self.spelling("a string ends on the line it begins on: write `\\n` for a line end", span, "\\n");
        }
        if quote != '"' {
            let span = self.report.span(start, self.at);
            let json = format!("\"{}\"", out.escape_default().to_string().replace("\\'", "'"));
            self.spelling(&format!("strings need double quotes: write `{}`", shorten(&json)), span, &json);
        }
        Some(out)
    }

    /// Whether the next quote ends a string, and does not begin another.
    fn closes_later(&self, closing: &[char]) -> bool {
        let rest = &self.text[self.at..];
        let Some(at) = rest.find(closing) else { return false };
        let behind = rest[at..].trim_start_matches(closing).trim_start();
        behind.is_empty() || behind.starts_with([',', '}', ']'])
    }

    fn unclosed(&mut self, start: usize, quote: char) -> Option<String> {
        let span = self.report.span(start, start + quote.len_utf8());
        self.report.push(
            Diagnostic::error(codes::UNCLOSED, format!("the quote `{quote}` is not closed"))
                .at_span(span, "opened here"),
        );
        None
    }

    fn escape(&mut self, out: &mut String) {
        let start = self.at;
        if let Some(length) =
            continuation(&self.text[start..]).filter(|n| self.text[start..start + n].contains('\n'))
        {
            self.continued(start, start + length, "");
            self.at += length;
            return;
        }
        self.at += 1;
        let Some(letter) = self.peek() else { return };
        self.at += letter.len_utf8();
        match letter {
            '"' | '\\' | '/' => out.push(letter),
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            'u' => self.unicode(start, out),
            other => {
                let span = self.report.span(start, self.at);
                let escape = &self.text[start..self.at];
                let message = format!("invalid JSON escape `{escape}`: write `\\{escape}` for a backslash");
                let place = Location::Span(self.report.span(start, start + 1));
                self.report.push(Diagnostic::error(codes::SYNTAX, message).at_span(span, "").fix(
                    "write two backslashes",
                    place,
                    "\\\\",
                    Safety::Unsafe,
                ));
                out.push('\\');
                out.push(other);
            }
        }
    }

    /// Parses the digits of `\u….`, and the second half of a surrogate pair.
    fn unicode(&mut self, start: usize, out: &mut String) {
        let unit = |at: usize| {
            let digits = self.text.get(at..at + 4).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))?;
            u16::from_str_radix(digits, 16).ok()
        };
        let first = unit(self.at);
        let second = if self.text[self.at..].get(4..6) == Some("\\u") { unit(self.at + 6) } else { None };
        let units = [first.unwrap_or(0xd800), second.unwrap_or(0)];
        if let Some(Ok(c)) = char::decode_utf16(units).next() {
            self.at += if c.len_utf16() == 2 { 10 } else { 4 };
            out.push(c);
        } else {
            self.at += if first.is_some() { 4 } else { 0 };
            let span = self.report.span(start, self.at);
            let message = "invalid escape: four hexadecimal digits must follow `\\u`, and surrogate pairs must be complete";
            self.report.push(Diagnostic::error(codes::SYNTAX, message).at_span(span, ""));
            out.push(char::REPLACEMENT_CHARACTER);
        }
    }
}
