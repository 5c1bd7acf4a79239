//! The words of a command line, as a POSIX shell splits them, with their places.

use std::ops::Range;

/// A part of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Text.
    Text(String),
    /// `$NAME` or `${NAME}`.
    Variable(String),
    /// Another expansion, as written: `$(pwd)`, `${NAME:-x}`.
    Other(String),
}

/// A word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// Its parts; none for an empty word in quotes.
    pub(super) pieces: Vec<Piece>,
    /// Its bytes.
    pub(super) range: Range<usize>,
}

/// The words of one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Words {
    /// The words.
    pub(super) words: Vec<Word>,
    /// Where the command ends: at a line end or an operator of the shell, or at the end of the text.
    pub(super) end: usize,
}

impl Word {
    /// A word without expansions.
    pub(super) fn plain(text: &str, range: Range<usize>) -> Self {
        let pieces = if text.is_empty() { vec![] } else { vec![Piece::Text(text.to_owned())] };
        Self { pieces, range }
    }

    /// The text; expansions as they are written.
    pub(super) fn text(&self) -> String {
        let text = |piece: &Piece| match piece {
            Piece::Text(text) | Piece::Other(text) => text.clone(),
            Piece::Variable(name) => format!("${name}"),
        };
        self.pieces.iter().map(text).collect()
    }

    /// The part of the word from a byte of its text on, where that byte is in its first piece.
    pub(super) fn after(&self, bytes: usize) -> Self {
        let mut pieces = self.pieces.clone();
        if let Some(Piece::Text(text)) = pieces.first_mut() {
            *text = text.get(bytes..).unwrap_or_default().to_owned();
            if text.is_empty() {
                pieces.remove(0);
            }
        }
        Self { pieces, range: self.range.clone() }
    }
}

/// Splits the first command of a text from a byte on.
///
/// # Errors
/// The place of a quote or bracket without its end.
pub(super) fn split(text: &str, start: usize) -> Result<Words, usize> {
    let mut reader = Reader { text, at: start, is_plain: false };
    let mut words = Vec::new();
    loop {
        reader.skip_blanks();
        match reader.peek() {
            None | Some('\n' | ';' | '|' | '&' | '<' | '>' | '(' | ')') => break,
            Some('#') => {
                let rest = &text[reader.at..];
                reader.at += rest.find('\n').unwrap_or(rest.len());
                break;
            }
            Some(_) => words.push(reader.word()?),
        }
    }
    Ok(Words { words, end: reader.at })
}

/// Splits a text in which line ends are blanks and operators of the shell are text, as Compose does.
///
/// # Errors
/// The place of a quote without its end.
pub(super) fn split_plain(text: &str) -> Result<Vec<Word>, usize> {
    let mut reader = Reader { text, at: 0, is_plain: true };
    let mut words = Vec::new();
    loop {
        reader.skip_blanks();
        if reader.peek().is_none() {
            return Ok(words);
        }
        words.push(reader.word()?);
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    /// Whether line ends are blanks, and operators text.
    is_plain: bool,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    /// Skips blanks and escaped line ends.
    fn skip_blanks(&mut self) {
        loop {
            let rest = &self.text[self.at..];
            if rest.starts_with([' ', '\t']) || self.is_plain && rest.starts_with('\n') {
                self.at += 1;
            } else if rest.starts_with("\\\n") {
                self.at += 2;
            } else if rest.starts_with("\\\r\n") {
                self.at += 3;
            } else if rest.starts_with("\r\n") {
                self.at += 1;
            } else {
                return;
            }
        }
    }

    fn word(&mut self) -> Result<Word, usize> {
        let start = self.at;
        let mut pieces = Vec::new();
        let mut open = None;
        while let Some(c) = self.peek() {
            let here = self.at;
            match (c, open) {
                (' ' | '\t' | '\n' | '\r', None) => break,
                (';' | '|' | '&' | '<' | '>' | '(' | ')', None) if !self.is_plain => break,
                ('\'', None) => {
                    let rest = &self.text[here + 1..];
                    let end = rest.find('\'').ok_or(here)?;
                    add(&mut pieces, &rest[..end]);
                    self.at = here + end + 2;
                }
                ('"', None) => {
                    open = Some(here);
                    self.at += 1;
                    add(&mut pieces, "");
                }
                ('"', Some(_)) => {
                    open = None;
                    self.at += 1;
                }
                ('\\', _) => {
                    self.at += 1;
                    match self.next() {
                        Some('\n') => {}
                        Some(c) if open.is_some() && !matches!(c, '"' | '\\' | '$' | '`') => {
                            add(&mut pieces, &format!("\\{c}"));
                        }
                        Some(c) => add(&mut pieces, c.encode_utf8(&mut [0; 4])),
                        None => add(&mut pieces, "\\"),
                    }
                }
                ('$' | '`', _) => self.expansion(&mut pieces)?,
                (c, _) => {
                    add(&mut pieces, c.encode_utf8(&mut [0; 4]));
                    self.at += c.len_utf8();
                }
            }
        }
        match open {
            Some(at) => Err(at),
            None => Ok(Word { pieces, range: start..self.at }),
        }
    }

    fn expansion(&mut self, pieces: &mut Vec<Piece>) -> Result<(), usize> {
        let start = self.at;
        let rest = &self.text[start + 1..];
        if self.peek() == Some('`') {
            let end = rest.find('`').ok_or(start)?;
            self.at = start + end + 2;
            pieces.push(Piece::Other(self.text[start..self.at].to_owned()));
            return Ok(());
        }
        let name: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        if let Some(inner) = rest.strip_prefix('{') {
            let end = inner.find('}').ok_or(start)?;
            self.at = start + end + 3;
            let inner = &inner[..end];
            let is_name = !inner.is_empty() && inner.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            pieces.push(if is_name {
                Piece::Variable(inner.to_owned())
            } else {
                Piece::Other(self.text[start..self.at].to_owned())
            });
        } else if rest.starts_with('(') {
            let end = closing(rest).ok_or(start)?;
            self.at = start + end + 2;
            pieces.push(Piece::Other(self.text[start..self.at].to_owned()));
        } else if name.is_empty() {
            // `$?`, `$@`, or a `$` that stands for itself.
            let special = rest.chars().next().filter(|c| "@*#?$!-".contains(*c));
            self.at = start + 1 + special.map_or(0, char::len_utf8);
            match special {
                Some(_) => pieces.push(Piece::Other(self.text[start..self.at].to_owned())),
                None => add(pieces, "$"),
            }
        } else {
            self.at = start + 1 + name.len();
            pieces.push(Piece::Variable(name));
        }
        Ok(())
    }
}

/// The byte of the bracket that closes the first one.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => return Some(at),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn add(pieces: &mut Vec<Piece>, text: &str) {
    match pieces.last_mut() {
        Some(Piece::Text(last)) => last.push_str(text),
        _ if text.is_empty() => {}
        _ => pieces.push(Piece::Text(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::{Piece, split};

    fn texts(text: &str) -> Vec<String> {
        split(text, 0).unwrap().words.iter().map(super::Word::text).collect()
    }

    #[test]
    fn words_are_split_as_a_shell_does() {
        assert_eq!(
            texts(r#"a 'b c' "d \"e\" \n" f\ g "" h"i"'j'"#),
            ["a", "b c", "d \"e\" \\n", "f g", "", "hij"]
        );
        assert_eq!(texts("run \\\n  -it \\\r\n x # why\ny"), ["run", "-it", "x"]);
        assert_eq!(texts("a; b"), ["a"]);
        assert_eq!(split("a 'b", 0), Err(2));
        assert_eq!(split("a \"$(b\"", 0), Err(3));
    }

    #[test]
    fn expansions_are_kept_apart() {
        let words = split(r#"-v "$PWD/x":/y '$z' $(pwd) ${A:-b} $"#, 0).unwrap().words;
        assert_eq!(words[1].pieces, [Piece::Variable("PWD".into()), Piece::Text("/x:/y".into())]);
        assert_eq!(words[2].pieces, [Piece::Text("$z".into())]);
        assert_eq!(words[3].pieces, [Piece::Other("$(pwd)".into())]);
        assert_eq!(words[4].pieces, [Piece::Other("${A:-b}".into())]);
        assert_eq!(words[5].pieces, [Piece::Text("$".into())]);
    }
}
