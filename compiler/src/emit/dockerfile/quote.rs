//! Quotes texts so that the builder reads them back unchanged.

use std::borrow::Cow;

/// What `$` means in a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dollar {
    /// A variable: `$PATH` is expanded, `\$` is a literal dollar sign.
    Variable,
    /// A literal dollar sign.
    Text,
}

/// A value in double quotes, for `ENV`, `LABEL` and `ARG`.
pub(super) fn quoted(value: &str, dollar: Dollar) -> String {
    let mut out = String::with_capacity(value.len() + 2);
    out.push('"');
    let mut rest = value.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' if dollar == Dollar::Variable && rest.peek() == Some(&'$') => {
                out.push('\\');
                out.extend(rest.next());
            }
            '\\' => out.push_str("\\\\"),
            '$' if dollar == Dollar::Text => out.push_str("\\$"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A key of `ENV` or `LABEL`, quoted unless it is a plain word.
pub(super) fn key(name: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    if !name.is_empty() && name.chars().all(plain) {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(quoted(name, Dollar::Text))
    }
}

/// A word in which `$` and `\` are literal: a user, an option's value, a path.
pub(super) fn word(text: &str) -> String {
    text.replace('\\', "\\\\").replace('$', "\\$")
}

/// The path of `WORKDIR`, which takes the whole line and may contain variables.
pub(super) fn argument(text: &str) -> Cow<'_, str> {
    if text.contains(['"', '\'']) || text.ends_with('\\') {
        Cow::Owned(quoted(text, Dollar::Variable))
    } else {
        Cow::Borrowed(text)
    }
}

/// The paths of `COPY`: words, or a JSON array if one contains a blank.
pub(super) fn paths(paths: &[&str]) -> String {
    let bare = |path: &&str| {
        !path.is_empty()
            && !path.contains(|c: char| c.is_whitespace() || c == '"' || c == '\'')
            && !path.starts_with("<<")
            && !path.starts_with("--")
    };
    if paths.iter().all(bare) && !paths[0].starts_with('[') {
        paths.iter().map(|path| word(path)).collect::<Vec<_>>().join(" ")
    } else {
        json_array(&paths.iter().map(|path| word(path)).collect::<Vec<_>>())
    }
}

/// A JSON array of strings with a space after each comma.
pub(super) fn json_array(items: &[String]) -> String {
    let items: Vec<String> =
        items.iter().map(|item| serde_json::Value::from(item.as_str()).to_string()).collect();
    format!("[{}]", items.join(", "))
}

/// The script as the rest of a `RUN` line, if that does not change its meaning.
///
/// `<<` would be read as a here-document, `[` as a JSON array, `--` as an option, a last `\` as a continuation.
pub(super) fn one_line(script: &str) -> Option<&str> {
    let line = script.trim();
    let misread = line.is_empty()
        || line.contains(['\n', '\r'])
        || line.contains("<<")
        || line.starts_with(['[', '#'])
        || line.starts_with("--")
        || line.ends_with('\\');
    (!misread).then_some(line)
}

/// A delimiter that is not a line of the script, and the script with a trailing line break.
pub(super) fn here_document(script: &str) -> (String, String) {
    let body = script.trim_end_matches(['\n', '\r', ' ', '\t']);
    let taken = |delimiter: &str| body.lines().any(|line| line.trim() == delimiter);
    let mut delimiter = "EOF".to_owned();
    let mut number = 1;
    while taken(&delimiter) {
        number += 1;
        delimiter = format!("EOF{number}");
    }
    (delimiter, format!("{body}\n"))
}
