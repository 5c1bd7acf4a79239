//! Variables and words of a Dockerfile, by the rules of BuildKit's own small shell.

use std::borrow::Cow;

/// A text with its variables filled in.
#[derive(Debug, Default)]
pub(super) struct Expanded {
    pub(super) text: String,
    /// Variables without a value; they stay as they are written.
    pub(super) missing: Vec<String>,
    /// Whether something stays that has a value but cuts it, such as `${A%.*}`.
    pub(super) opaque: bool,
}

impl Expanded {
    /// Whether nothing is left to fill in.
    pub(super) fn is_whole(&self) -> bool {
        self.missing.is_empty() && !self.opaque
    }
}

/// Fills variables in.
pub(super) fn expand(text: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Expanded {
    let mut out = String::with_capacity(text.len());
    let mut missing = Vec::new();
    let mut opaque = false;
    let mut rest = text;
    while let Some(at) = rest.find(['$', '\\']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix('\\') {
            let escaped = after.chars().next();
            match escaped {
                Some('$') => out.push('$'),
                Some(c) => out.extend(['\\', c]),
                None => out.push('\\'),
            }
            rest = &after[escaped.map_or(0, char::len_utf8)..];
            continue;
        }
        let Some((variable, after)) = variable(&rest[1..]) else {
            out.push('$');
            rest = &rest[1..];
            continue;
        };
        let written = &rest[..rest.len() - after.len()];
        rest = after;
        let value = lookup(variable.name);
        let set = value.as_deref().is_some_and(|value| !variable.colon || !value.is_empty());
        match (variable.operator, set) {
            (Some('-'), false) | (Some('+'), true) => out.push_str(&expand(variable.word, lookup).text),
            (Some('+'), false) => {}
            (Some('#' | '%' | '/'), true) => {
                opaque = true;
                out.push_str(written);
            }
            (_, _) => {
                if value.is_none() {
                    missing.push(variable.name.to_owned());
                }
                out.push_str(value.as_deref().unwrap_or(written));
            }
        }
    }
    out.push_str(rest);
    Expanded { text: out, missing, opaque }
}

struct Variable<'a> {
    name: &'a str,
    colon: bool,
    operator: Option<char>,
    word: &'a str,
}

/// The variable behind `$`, and what follows it.
fn variable(text: &str) -> Option<(Variable<'_>, &str)> {
    let name_of =
        |text: &str| text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    let Some(inside) = text.strip_prefix('{') else {
        let end = name_of(text);
        let variable = Variable { name: &text[..end], colon: false, operator: None, word: "" };
        return (end > 0 && !text.starts_with(|c: char| c.is_ascii_digit()))
            .then_some((variable, &text[end..]));
    };
    let close = closing(inside)?;
    let (body, after) = (&inside[..close], &inside[close + 1..]);
    let end = name_of(body);
    let (name, modifier) = body.split_at(end);
    let colon = modifier.starts_with(':');
    let modifier = modifier.trim_start_matches(':');
    let operator = modifier.chars().next();
    let word = modifier.get(1..).unwrap_or_default();
    (end > 0).then_some((Variable { name, colon, operator, word }, after))
}

/// The brace that closes, past nested ones.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => return Some(at),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The words of a line, quotes taken off; `$` that a single quote protects becomes `\$`.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match (quote, c) {
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (Some(open), c) if c == open => quote = None,
            (Some('\''), '$') => word.get_or_insert_default().push_str("\\$"),
            (None | Some('"'), '\\') => match rest.next() {
                Some('$') => word.get_or_insert_default().push_str("\\$"),
                Some(next) => word.get_or_insert_default().push(next),
                None => word.get_or_insert_default().push('\\'),
            },
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// `NAME=VALUE …` of `ENV`, or its old form `NAME VALUE`.
pub(super) fn pairs(text: &str) -> Vec<(String, String)> {
    let found = words(text);
    if found.first().is_some_and(|word| !word.contains('=')) {
        let text = text.trim();
        let (name, value) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        return vec![(name.to_owned(), value.trim().to_owned())];
    }
    found.iter().filter_map(|word| word.split_once('=')).map(|(n, v)| (n.to_owned(), v.to_owned())).collect()
}

/// A word without its quotes.
pub(super) fn unquoted(text: &str) -> Cow<'_, str> {
    if text.contains(['"', '\'', '\\']) { words(text).join(" ").into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables() {
        let lookup = |name: &str| match name {
            "A" => Some("1".to_owned()),
            "E" => Some(String::new()),
            _ => None,
        };
        for (text, expected) in [
            ("x$A-${A}y", "x1-1y"),
            ("${E:-d}${E-d}|${U:-$A}|${U-x}", "d|1|x"),
            ("${A:+set}${U:+set}", "set"),
            (r"\$A $ $1 ${", "$A $ $1 ${"),
            ("$U/${U}", "$U/${U}"),
            ("${U:-{a}}b", "{a}b"),
        ] {
            assert_eq!(expand(text, &lookup).text, expected, "{text}");
        }
        assert_eq!(expand("$U${U}", &lookup).missing, ["U", "U"]);
        let cut = expand("${A%.*}", &lookup);
        assert!(cut.opaque && cut.missing.is_empty() && cut.text == "${A%.*}");
    }

    #[test]
    fn words_and_pairs() {
        assert_eq!(words(r#"a "b c" d\ e '' 'f$x'"#), ["a", "b c", "d e", "", r"f\$x"]);
        assert_eq!(
            pairs(r#"A=1 B="x y" C="#),
            [("A", "1"), ("B", "x y"), ("C", "")].map(|(a, b)| (a.into(), b.into()))
        );
        assert_eq!(pairs("A some = text"), [("A".to_owned(), "some = text".to_owned())]);
    }
}
