//! The words of a Rust file: no comments, no layout, each with its line.
//!
//! A parser would know more and see less: it leaves the arguments of macros unread, where paths stand as well.

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An identifier or a keyword.
    Word,
    /// `::`.
    Colons,
    /// Any other character that means something.
    Mark,
    /// A string literal; its text is what stands between the quotes.
    Text,
}

/// A token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'t> {
    pub(crate) kind: Kind,
    pub(crate) text: &'t str,
    /// The line, from 1.
    pub(crate) line: usize,
}

impl Token<'_> {
    /// Whether it is this word or mark.
    pub(crate) fn is(&self, text: &str) -> bool {
        self.kind != Kind::Text && self.text == text
    }
}

/// The tokens of a file. Numbers, characters and lifetimes are left out.
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut lexer = Lexer { text, at: 0, line: 1, found: Vec::new() };
    while let Some(next) = lexer.rest().chars().next() {
        lexer.token(next);
    }
    lexer.found
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
    line: usize,
    found: Vec<Token<'t>>,
}

impl<'t> Lexer<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn token(&mut self, next: char) {
        let rest = self.rest();
        match next {
            _ if rest.starts_with("//") => self.skip(rest.find('\n').unwrap_or(rest.len())),
            _ if rest.starts_with("/*") => self.skip(comment(rest)),
            '"' => self.string(0),
            '\'' => self.skip(character(rest)),
            _ if rest.starts_with("::") => self.push(Kind::Colons, 0, 2),
            c if c.is_ascii_digit() => self.skip(word(rest)),
            c if c == '_' || c.is_alphabetic() => self.word(),
            c if c.is_whitespace() => self.skip(c.len_utf8()),
            c => self.push(Kind::Mark, 0, c.len_utf8()),
        }
    }

    fn word(&mut self) {
        let rest = self.rest();
        let end = word(rest);
        let behind = &rest[end..];
        let raw = behind.trim_start_matches('#');
        match &rest[..end] {
            "r" | "br" | "cr" if raw.starts_with('"') => self.raw_string(end, behind.len() - raw.len()),
            "b" | "c" if behind.starts_with('"') => self.string(end),
            "b" if behind.starts_with('\'') => self.skip(end + character(behind)),
            "r" if behind.starts_with('#') => {
                self.skip(2);
                self.push(Kind::Word, 0, word(self.rest()));
            }
            _ => self.push(Kind::Word, 0, end),
        }
    }

    /// A string whose quote stands that many bytes ahead.
    fn string(&mut self, quote: usize) {
        let inner = &self.rest()[quote + 1..];
        let mut end = inner.len();
        let mut escaped = false;
        for (at, c) in inner.char_indices() {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => {
                    end = at;
                    break;
                }
                _ => {}
            }
        }
        self.text(quote + 1, end, 1);
    }

    fn raw_string(&mut self, prefix: usize, hashes: usize) {
        let close = format!("\"{}", "#".repeat(hashes));
        let open = prefix + hashes + 1;
        let inner = &self.rest()[open..];
        self.text(open, inner.find(&close).unwrap_or(inner.len()), close.len());
    }

    fn text(&mut self, open: usize, length: usize, close: usize) {
        self.push(Kind::Text, open, open + length);
        self.skip(close.min(self.rest().len()));
    }

    fn push(&mut self, kind: Kind, start: usize, end: usize) {
        let token = Token { kind, text: &self.rest()[start..end], line: self.line };
        self.found.push(token);
        self.skip(end);
    }

    fn skip(&mut self, length: usize) {
        self.line += self.rest()[..length].matches('\n').count();
        self.at += length;
    }
}

/// How long the word at the beginning is.
fn word(rest: &str) -> usize {
    rest.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(rest.len())
}

/// How long the comment at the beginning is; comments nest.
fn comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        let here = &rest[at..];
        if here.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += here.chars().next().map_or(1, char::len_utf8);
        }
    }
    at
}

/// How long the character literal or the lifetime at the beginning is.
fn character(rest: &str) -> usize {
    let mut letters = rest.char_indices().skip(1);
    match (letters.next(), letters.next()) {
        (Some((_, '\\')), _) => {
            rest.char_indices().skip(3).find(|(_, c)| *c == '\'').map_or(rest.len(), |(at, _)| at + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, tokens};

    fn check(text: &str, expected: &str) {
        let shown: Vec<String> = tokens(text)
            .iter()
            .map(|token| match token.kind {
                Kind::Text => format!("{}\"{}\"", token.line, token.text),
                _ => format!("{}{}", token.line, token.text),
            })
            .collect();
        assert_eq!(shown.join(" "), expected, "{text}");
    }

    #[test]
    fn comments_strings_and_characters_hide_nothing() {
        check("use a::b; // use c\n/* use /* d */ */ e", "1use 1a 1:: 1b 1; 2e");
        check(
            "x(\"use \\\" y\", 'u', '\\'', '\\u{1f}', &'a z)",
            "1x 1( 1\"use \\\" y\" 1, 1, 1, 1, 1& 1a 1z 1)",
        );
        check("r#\"a\"b\"# r#type br\"\\\" b'\"' c\"d\"", "1\"a\"b\" 1type 1\"\\\" 1\"d\"");
        check("\"a\nb\"\nc 0x1f_u8 1.5", "1\"a\nb\" 3c 3.");
    }
}
