//! A script split into the programs it starts.

use std::collections::BTreeMap;

use super::program::{Command, base_name, is_shell};
use super::wrapper;

/// Maximum nesting of scripts: `bash -c "bash -c '…'"`.
const MAX_DEPTH: usize = 4;

/// Splits a script into the programs it starts.
pub(crate) fn split(script: &str) -> Vec<Command> {
    let mut reader = Reader::default();
    reader.script(script);
    reader.found
}

/// The programs that a list of arguments starts.
pub(super) fn programs(words: &[String]) -> Vec<Command> {
    let mut reader = Reader::default();
    reader.simple(words, false, false);
    reader.found
}

/// The parser state.
#[derive(Default)]
struct Reader {
    found: Vec<Command>,
    /// The variables that the script sets.
    variables: BTreeMap<String, String>,
    depth: usize,
}

type Chars<'s> = std::iter::Peekable<std::str::Chars<'s>>;

impl Reader {
    fn script(&mut self, script: &str) {
        let mut words: Vec<String> = Vec::new();
        let mut word: Option<String> = None;
        let mut here: Vec<String> = Vec::new();
        let mut chars = script.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '\\' => match chars.next() {
                    Some('\n') | None => {}
                    Some(next) => word.get_or_insert_default().push(next),
                },
                '\'' => word.get_or_insert_default().extend(chars.by_ref().take_while(|&c| c != '\'')),
                '"' => {
                    let word = word.get_or_insert_default();
                    while let Some(c) = chars.next().filter(|&c| c != '"') {
                        let escaped =
                            c == '\\' && chars.peek().is_some_and(|&n| matches!(n, '"' | '\\' | '$'));
                        word.push(if escaped { chars.next().unwrap_or(c) } else { c });
                    }
                }
                '$' if chars.peek() == Some(&'(') => {
                    let inner = substitution(&mut chars);
                    // `$((1 + 2))` starts nothing.
                    if !inner.starts_with('(') && self.depth < MAX_DEPTH {
                        self.depth += 1;
                        self.script(&inner);
                        self.depth -= 1;
                    }
                    word.get_or_insert_default().push_str(&format!("$({inner})"));
                }
                '#' if word.is_none() => while chars.next_if(|&c| c != '\n').is_some() {},
                '<' if chars.peek() == Some(&'<') => here.extend(delimiter(&mut chars)),
                // `>&2` and `&>file` send output somewhere; they end nothing.
                '>' if chars.peek() == Some(&'&') => {
                    chars.next();
                    word.get_or_insert_default().push('>');
                }
                '&' if chars.peek() == Some(&'>') => word.get_or_insert_default().push('&'),
                ' ' | '\t' | '\r' => words.extend(word.take()),
                '\n' | ';' | '&' | '|' | '(' | ')' => {
                    words.extend(word.take());
                    let double = matches!(c, '&' | '|' | ';') && chars.next_if_eq(&c).is_some();
                    // `|&` is a pipe too.
                    let piped = c == '|' && !double;
                    if piped {
                        chars.next_if_eq(&'&');
                    }
                    self.simple(&std::mem::take(&mut words), c == '&' && !double, piped);
                    if c == '\n' {
                        here.drain(..).for_each(|end| skip_here(&mut chars, &end));
                    }
                }
                c => word.get_or_insert_default().push(c),
            }
        }
        words.extend(word);
        self.simple(&words, false, false);
    }

    /// Adds the program after assignments, keywords and programs that start another.
    fn simple(&mut self, words: &[String], background: bool, piped: bool) {
        let mut env: Vec<(String, String)> = Vec::new();
        let mut timed = false;
        let mut rest = words;
        while let Some(first) = rest.first() {
            if let Some((name, value)) = assignment(first) {
                env.push((name.to_owned(), value.to_owned()));
                rest = &rest[1..];
            } else if opens(first) {
                rest = &rest[1..];
            } else if let Some(behind) = wrapper::behind(rest) {
                timed |= base_name(first) == "timeout";
                rest = behind;
            } else {
                break;
            }
        }
        let Some(first) = rest.first() else {
            self.variables.extend(env);
            return;
        };
        if closes(first) {
            if let Some(last) = self.found.last_mut() {
                last.background |= background;
                last.piped |= piped;
            }
            return;
        }
        if matches!(first.as_str(), "export" | "declare" | "local" | "readonly" | "typeset") {
            let set = rest[1..].iter().filter_map(|word| assignment(word));
            self.variables.extend(set.map(|(name, value)| (name.to_owned(), value.to_owned())));
        }
        if let Some(inner) = self.inner(rest).filter(|_| self.depth < MAX_DEPTH) {
            self.depth += 1;
            let before = self.found.len();
            self.script(&inner);
            self.depth -= 1;
            let added = self.found.get_mut(before..).unwrap_or_default();
            for command in added.iter_mut() {
                command.env.splice(..0, env.clone());
                command.timed |= timed;
            }
            if let Some(last) = added.last_mut() {
                last.background |= background;
                last.piped |= piped;
            }
            return;
        }
        self.found.push(Command { words: rest.to_vec(), env, background, piped, timed });
    }

    /// The script that words run: that of `bash -c`, of `eval`, or the command in a variable of the script.
    fn inner(&self, words: &[String]) -> Option<String> {
        let (first, arguments) = words.split_first()?;
        if is_shell(first) {
            let at = arguments
                .iter()
                .position(|w| w.starts_with('-') && !w.starts_with("--") && w.ends_with('c'))?;
            return arguments.get(at + 1).cloned();
        }
        if first == "eval" {
            return Some(arguments.join(" "));
        }
        let name = first.strip_prefix('$')?;
        let name = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name);
        let value = self.variables.get(name).filter(|value| !value.contains(first.as_str()))?;
        let quoted = arguments.iter().map(|word| jobc_schema::shell::quote(word));
        Some([value.clone()].into_iter().chain(quoted).collect::<Vec<_>>().join(" "))
    }
}

/// What is in the parentheses of `$(…)`.
fn substitution(chars: &mut Chars<'_>) -> String {
    chars.next();
    let mut open = 1;
    let inner = |c: &char| {
        open += match c {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        open > 0
    };
    chars.by_ref().take_while(inner).collect()
}

/// The name and the value of `NAME=VALUE`.
fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then_some((name, value))
}

/// Whether a command follows a word.
fn opens(word: &str) -> bool {
    matches!(
        word,
        "exec" | "time" | "nohup" | "command" | "then" | "do" | "else" | "if" | "while" | "until" | "!" | "{"
    )
}

/// Whether a word ends a loop, a condition or a group.
fn closes(word: &str) -> bool {
    matches!(word, "done" | "fi" | "esac" | "}")
}

/// Reads the word after `<<` that ends a text in place.
fn delimiter(chars: &mut Chars<'_>) -> Option<String> {
    chars.next();
    if chars.next_if_eq(&'<').is_some() {
        return None;
    }
    let mut end = String::new();
    chars.next_if_eq(&'-');
    while chars.next_if_eq(&' ').is_some() {}
    while let Some(c) = chars.next_if(|c| !c.is_whitespace() && !matches!(c, ';' | '|' | '&' | '>' | ')')) {
        if !matches!(c, '\'' | '"' | '\\') {
            end.push(c);
        }
    }
    Some(end).filter(|end| !end.is_empty())
}

/// Skips the lines of a text in place.
fn skip_here(chars: &mut Chars<'_>, end: &str) {
    while chars.peek().is_some() {
        let line: String = chars.by_ref().take_while(|&c| c != '\n').collect();
        if line.trim_start_matches('\t') == end {
            return;
        }
    }
}
