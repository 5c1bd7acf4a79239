//! Expands variables and quotes in a word, by the rules of BuildKit's own small shell.
//!
//! `$x ${x} ${x:-d} ${x-d} ${x:+d} ${x+d} ${x:?m} ${x?m} ${x#p} ${x##p} ${x%p} ${x%%p} ${x/p/r} ${x//p/r}`; single
//! quotes protect everything, double quotes all but `$` and the escape character. Unlike in a shell, a value is not
//! split, except by [`words`].

use std::cell::RefCell;
use std::iter::Peekable;
use std::str::Chars;

use regex::Regex;

/// The value of a name.
pub(super) type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Removes quotes and expands variables in a text; returns what is wrong with it if that fails.
pub(super) fn expand(text: &str, escape: char, lookup: Lookup<'_>) -> Result<String, String> {
    Ok(Shell::new(text, escape, lookup, Quotes::Removed).until(None, false)?.text)
}

/// The same, split into words at unquoted blanks, including those in values.
pub(super) fn words(text: &str, escape: char, lookup: Lookup<'_>) -> Result<Vec<String>, String> {
    Ok(Shell::new(text, escape, lookup, Quotes::Removed).until(None, false)?.words())
}

/// Expands variables in a heredoc, where quotes have no special meaning.
pub(super) fn heredoc(text: &str, lookup: Lookup<'_>) -> Result<String, String> {
    Ok(Shell::new(text, '\\', lookup, Quotes::Kept).until(None, false)?.text)
}

/// The same as [`expand`], except that variables without a value are left unchanged.
pub(super) fn expand_known(text: &str, escape: char, lookup: Lookup<'_>) -> Result<String, String> {
    let kept = RefCell::default();
    let mut shell = Shell::new(text, escape, lookup, Quotes::Removed);
    shell.kept = Some(&kept);
    Ok(shell.until(None, false)?.text)
}

/// The variables of a text without a value and without a default.
pub(super) fn missing(text: &str, escape: char, lookup: Lookup<'_>) -> Vec<String> {
    let kept = RefCell::default();
    let mut shell = Shell::new(text, escape, lookup, Quotes::Removed);
    shell.kept = Some(&kept);
    let _ = shell.until(None, false);
    kept.into_inner()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    Removed,
    Kept,
}

struct Shell<'a> {
    rest: Peekable<Chars<'a>>,
    escape: char,
    lookup: Lookup<'a>,
    quotes: Quotes,
    /// The number of open `${…}`, limited so that a file of repeated `${a:-` cannot overflow the stack.
    depth: usize,
    /// The names of variables without a value, if those are left unchanged.
    kept: Option<&'a RefCell<Vec<String>>>,
}

/// More than any hand-written file has.
const MAX_DEPTH: usize = 64;

/// The expanded text, with the ends of words.
#[derive(Default)]
struct Expansion {
    text: String,
    words: Vec<String>,
    word: Option<String>,
}

impl Expansion {
    /// A character that may end a word.
    fn open(&mut self, c: char) {
        self.text.push(c);
        if c.is_whitespace() {
            self.words.extend(self.word.take().filter(|word| !word.is_empty()));
        } else {
            self.word.get_or_insert_default().push(c);
        }
    }

    /// Text in quotes.
    fn protected(&mut self, text: &str) {
        self.text.push_str(text);
        self.word.get_or_insert_default().push_str(text);
    }

    fn words(mut self) -> Vec<String> {
        self.words.extend(self.word.filter(|word| !word.is_empty()));
        self.words
    }
}

impl<'a> Shell<'a> {
    fn new(text: &'a str, escape: char, lookup: Lookup<'a>, quotes: Quotes) -> Self {
        Self { rest: text.chars().peekable(), escape, lookup, quotes, depth: 0, kept: None }
    }

    /// Expands up to a character, which is consumed, or to the end.
    ///
    /// `raw` keeps the escape characters, which are part of a pattern.
    fn until(&mut self, stop: Option<char>, raw: bool) -> Result<Expansion, String> {
        let mut read = Expansion::default();
        while let Some(c) = self.rest.next() {
            match c {
                c if Some(c) == stop => return Ok(read),
                '\'' if self.quotes == Quotes::Removed => {
                    let text = self.single_quoted()?;
                    read.protected(&text);
                }
                '"' if self.quotes == Quotes::Removed => {
                    let text = self.double_quoted(raw)?;
                    read.protected(&text);
                }
                '$' => self.dollar()?.chars().for_each(|c| read.open(c)),
                c if c == self.escape => {
                    if raw {
                        read.protected(c.encode_utf8(&mut [0; 4]));
                    }
                    if let Some(next) = self.rest.next() {
                        read.protected(next.encode_utf8(&mut [0; 4]));
                    }
                }
                c => read.open(c),
            }
        }
        match stop {
            None => Ok(read),
            Some(stop) => Err(format!("`${{` is not closed: a `{stop}` is missing")),
        }
    }

    fn single_quoted(&mut self) -> Result<String, String> {
        let mut text = String::new();
        for c in self.rest.by_ref() {
            if c == '\'' {
                return Ok(text);
            }
            text.push(c);
        }
        Err("a single quote is not closed".to_owned())
    }

    fn double_quoted(&mut self, raw: bool) -> Result<String, String> {
        let mut text = String::new();
        while let Some(c) = self.rest.next() {
            match c {
                '"' => return Ok(text),
                '$' => text.push_str(&self.dollar()?),
                c if c == self.escape => {
                    if raw {
                        text.push(c);
                    }
                    match self.rest.peek() {
                        Some(&next) if next == '"' || next == '$' || next == self.escape => {
                            text.push(next);
                            self.rest.next();
                        }
                        // Before anything else it is a literal character.
                        Some(_) if !raw => text.push(c),
                        _ => {}
                    }
                }
                c => text.push(c),
            }
        }
        Err("a double quote is not closed".to_owned())
    }

    /// Expands what follows a `$` that was consumed.
    fn dollar(&mut self) -> Result<String, String> {
        if self.rest.peek() != Some(&'{') {
            let name = self.name();
            return Ok(match self.value(&name) {
                _ if name.is_empty() => "$".to_owned(),
                Some(value) => value,
                None => self.without_value(&name, |name| format!("${name}")),
            });
        }
        self.rest.next();
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("more than {MAX_DEPTH} `${{` in one another"));
        }
        let value = self.braces();
        self.depth -= 1;
        value
    }

    /// Expands the rest of `${`.
    fn braces(&mut self) -> Result<String, String> {
        let name = self.name();
        if name.is_empty() {
            return Err("`${` needs a name: `${NAME}`".to_owned());
        }
        let value = self.value(&name);
        let mut modifier = self.rest.next();
        let colon = modifier == Some(':');
        if colon {
            modifier = self.rest.next();
        }
        let set = value.as_ref().is_some_and(|value| !colon || !value.is_empty());
        let value = match (value, modifier) {
            (Some(value), _) => value,
            (None, Some('-' | '+' | '?')) => String::new(),
            (None, _) => self.without_value(&name, |name| format!("${{{name}}}")),
        };
        match modifier {
            Some('}') if !colon => Ok(value),
            Some('-') => {
                let word = self.until(Some('}'), false)?.text;
                Ok(if set { value } else { word })
            }
            Some('+') => {
                let word = self.until(Some('}'), false)?.text;
                Ok(if set { word } else { String::new() })
            }
            Some('?') => {
                let word = self.until(Some('}'), false)?.text;
                let why = match (word.is_empty(), colon) {
                    (false, _) => word,
                    (true, true) => "has no value, or an empty one".to_owned(),
                    (true, false) => "has no value".to_owned(),
                };
                if set { Ok(value) } else { Err(format!("`{name}`: {why}")) }
            }
            Some(side @ ('#' | '%')) => {
                let word = self.until(Some('}'), true)?.text;
                let (word, longest) = match word.strip_prefix(side) {
                    Some(word) => (word, true),
                    None => (word.as_str(), false),
                };
                let pattern = pattern(word)?;
                Ok(if side == '#' {
                    cut_front(&value, &pattern, longest)
                } else {
                    cut_back(&value, &pattern, longest)
                })
            }
            Some('/') if !colon => {
                let all = self.rest.next_if_eq(&'/').is_some();
                let from = self.until(Some('/'), true)?.text;
                let to = self.until(Some('}'), true)?.text;
                Ok(replace(&value, &pattern(&from)?, &to, all))
            }
            Some(other) => Err(format!("`${{{name}{}{other}` is not known", if colon { ":" } else { "" })),
            None => Err(format!("`${{{name}` is not closed: a `}}` is missing")),
        }
    }

    /// The expansion of a variable without a value: empty, or the variable as written.
    fn without_value(&self, name: &str, written: impl Fn(&str) -> String) -> String {
        match self.kept {
            Some(kept) => {
                kept.borrow_mut().push(name.to_owned());
                written(name)
            }
            None => String::new(),
        }
    }

    /// A name: letters, digits and `_`; only digits; or one of the shell's special characters.
    fn name(&mut self) -> String {
        let mut name = String::new();
        match self.rest.peek() {
            Some(c) if c.is_ascii_digit() => {
                while let Some(c) = self.rest.next_if(char::is_ascii_digit) {
                    name.push(c);
                }
            }
            Some('@' | '*' | '#' | '?' | '-' | '$' | '!') => name.extend(self.rest.next()),
            _ => {
                while let Some(c) = self.rest.next_if(|c| c.is_alphanumeric() || *c == '_') {
                    name.push(c);
                }
            }
        }
        name
    }

    fn value(&self, name: &str) -> Option<String> {
        (self.lookup)(name)
    }
}

/// Converts a pattern of `*` and `?` to a regular expression for a whole text; brackets have no meaning here.
fn pattern(text: &str) -> Result<Pattern, String> {
    let mut expression = String::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let literal = match c {
            '*' => {
                expression.push_str(".*");
                continue;
            }
            '?' => {
                expression.push('.');
                continue;
            }
            '\\' => match rest.next() {
                Some(c @ ('}' | '/' | '*' | '?' | '\\')) => c,
                Some(c) => return Err(format!("invalid escape `\\{c}` in a pattern")),
                None => return Err("a pattern ends with `\\`".to_owned()),
            },
            c => c,
        };
        expression.push_str(&regex::escape(literal.encode_utf8(&mut [0; 4])));
    }
    let build = |text: String| Regex::new(&text).map_err(|_| "the pattern is too long".to_owned());
    Ok(Pattern { whole: build(format!("^(?:{expression})$"))?, anywhere: build(expression)? })
}

struct Pattern {
    whole: Regex,
    anywhere: Regex,
}

/// The offsets at which a text can be split.
fn boundaries(text: &str) -> impl DoubleEndedIterator<Item = usize> {
    text.char_indices().map(|(at, _)| at).chain([text.len()]).collect::<Vec<_>>().into_iter()
}

fn cut_front(value: &str, pattern: &Pattern, longest: bool) -> String {
    let fits = |end: &usize| pattern.whole.is_match(&value[..*end]);
    let end = if longest { boundaries(value).rev().find(fits) } else { boundaries(value).find(fits) };
    value[end.unwrap_or(0)..].to_owned()
}

fn cut_back(value: &str, pattern: &Pattern, longest: bool) -> String {
    let fits = |start: &usize| pattern.whole.is_match(&value[*start..]);
    let start = if longest { boundaries(value).find(fits) } else { boundaries(value).rev().find(fits) };
    value[..start.unwrap_or(value.len())].to_owned()
}

fn replace(value: &str, pattern: &Pattern, to: &str, all: bool) -> String {
    let limit = usize::from(!all);
    pattern.anywhere.replacen(value, limit, regex::NoExpand(to)).into_owned()
}

#[cfg(test)]
mod tests;
