//! Interpolation: `$NAME`, `${NAME:-default}` and `$$`, and the file `.env`.

use std::collections::BTreeMap;

use camino::Utf8Path;

use crate::files::Files;
use crate::source::Span;

use super::super::container::{is_secret, param, secret};
use super::super::draft::Draft;

/// The variables of `.env`.
#[derive(Debug, Default)]
pub(super) struct Variables(BTreeMap<String, String>);

/// An expansion in a text.
struct Expansion<'t> {
    name: &'t str,
    /// `:-`, `-`, `:?`, `?`, `:+`, `+`, or empty, and what follows it.
    operator: &'t str,
    word: &'t str,
}

impl Variables {
    /// Reads `.env` next to the file; without one there are none.
    pub(super) fn read(files: &dyn Files) -> Self {
        let mut variables = Self(BTreeMap::new());
        variables.add(Utf8Path::new(".env"), files);
        variables
    }

    /// The value of a variable.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Adds the variables of a file, except those that are known.
    pub(super) fn add(&mut self, path: &Utf8Path, files: &dyn Files) {
        let text = files.read(path).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        for line in text.unwrap_or_default().lines().map(str::trim).filter(|line| !line.starts_with('#')) {
            if let Some((name, value)) = line.split_once('=') {
                let value = value.split(" #").next().unwrap_or_default().trim();
                let name = name.trim().trim_start_matches("export ").to_owned();
                self.0.entry(name).or_insert_with(|| value.trim_matches(['"', '\'']).to_owned());
            }
        }
    }

    /// A text with its variables as parameters of the job; `${{` of the text stays as it is.
    pub(super) fn interpolate(&self, text: &str, part: Span, draft: &mut Draft<'_>) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            out.push_str(&rest[..at]);
            let after = &rest[at + 1..];
            if let Some(literal) = after.strip_prefix('$') {
                out.push_str(if literal.starts_with("{{") { "${{ '$' }}" } else { "$" });
                rest = literal;
                continue;
            }
            let Some((expansion, length)) = expansion(after) else {
                out.push('$');
                rest = after;
                continue;
            };
            out.push_str(&self.value(&expansion, out.is_empty() && length == after.len(), part, draft));
            rest = &after[length..];
        }
        out.push_str(rest);
        out
    }

    fn value(&self, expansion: &Expansion<'_>, is_whole: bool, part: Span, draft: &mut Draft<'_>) -> String {
        let Expansion { name, operator, word } = *expansion;
        if operator.ends_with('+') {
            let value = self.get(name).filter(|value| !value.is_empty() || operator == "+");
            let text = value.map(|_| self.expanded(word)).unwrap_or_default();
            let set = if value.is_some() { "is set" } else { "is not set" };
            draft.changed(
                part,
                format!("`${{{name}{operator}…}}` becomes `{text}`: `{name}` {set} in `.env`"),
                "the job file has this value whatever the variable is later",
            );
            return text;
        }
        let known = self.get(name);
        if is_whole && is_secret(name) && operator.is_empty() {
            return secret(draft, name, part);
        }
        let word = operator.ends_with('-').then(|| self.expanded(word));
        param(draft, name, known.or(word.as_deref()), part)
    }

    /// A default; variables in it have the value of `.env`, or their own default.
    pub(super) fn expanded(&self, text: &str) -> String {
        let Some(at) = text.find('$') else { return text.to_owned() };
        let Some((inner, length)) = expansion(&text[at + 1..]) else { return text.to_owned() };
        let value = self.0.get(inner.name).cloned().unwrap_or_else(|| {
            if inner.operator.ends_with('-') { self.expanded(inner.word) } else { String::new() }
        });
        format!("{}{value}{}", &text[..at], self.expanded(&text[at + 1 + length..]))
    }
}

/// The expansion that follows a `$`, and its length.
fn expansion(text: &str) -> Option<(Expansion<'_>, usize)> {
    let length =
        |text: &str| text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    let is_name = |name: &str| name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let Some(inner) = text.strip_prefix('{') else {
        let name = &text[..length(text)];
        return is_name(name).then_some((Expansion { name, operator: "", word: "" }, name.len()));
    };
    let mut depth = 1_usize;
    let end = inner.char_indices().find_map(|(at, c)| {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(at)
    })?;
    let inside = &inner[..end];
    let (name, rest) = inside.split_at(length(inside));
    let operator = [":-", ":?", ":+", "-", "?", "+"]
        .into_iter()
        .find(|operator| rest.starts_with(operator))
        .unwrap_or("");
    (is_name(name) && (!operator.is_empty() || rest.is_empty()))
        .then(|| (Expansion { name, operator, word: &rest[operator.len()..] }, end + 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Sink;

    #[test]
    fn variables_become_parameters() {
        let variables = Variables(BTreeMap::from([("TAG".to_owned(), "v2".to_owned())]));
        let mut sink = Sink::new();
        let mut draft = Draft::new(Span::default(), &mut sink);
        let mut text = |text: &str| variables.interpolate(text, Span::default(), &mut draft);
        assert_eq!(text("a:${TAG}-$X"), "a:${{ params.TAG }}-${{ params.X }}");
        assert_eq!(text("$$HOME ${Y:-${Z:-deep}} $"), "$HOME ${{ params.Y }} $");
        assert_eq!(text("${HF_TOKEN}"), "${{ secrets.hf_token }}");
        assert_eq!(draft.get(&["params", "Y", "default", "default"]).unwrap().as_str(), Some("deep"));
        assert_eq!(draft.get(&["params", "TAG", "default", "default"]).unwrap().as_str(), Some("v2"));
    }
}
