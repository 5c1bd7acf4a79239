//! `.dockerignore`, which excludes files from the build context, and `--exclude`, with the same patterns.
//!
//! The last pattern that matches a path, or a directory above it, applies; a pattern that begins with `!` includes the
//! path again. `**` matches any number of directories. The rules are those of moby's patternmatcher, which all but
//! the earliest builders use: a `*` elsewhere never matches a slash, a leading slash is ignored, and `#`
//! begins a comment only as the first character of a line.

use std::path::Path;

use regex::Regex;
use serde::{Deserialize, Serialize};

use super::glob::{self, Token};
use super::refusal::{Refusal, Refusals};

/// What jobc leaves out of a build context and of the code of a job, with the reasons. Later patterns may include it again.
pub const LEFT_OUT: &[(&str, &[&str])] = &[
    ("version control", &[".git", ".hg", ".svn"]),
    ("what jobc writes", &["out"]),
    (
        "what Python and its tools leave behind",
        &[
            "**/__pycache__",
            "**/*.pyc",
            "**/.ipynb_checkpoints",
            "**/.mypy_cache",
            "**/.pytest_cache",
            "**/.ruff_cache",
        ],
    ),
    ("environments of this machine", &[".venv", "venv", "**/.DS_Store", ".idea", ".vscode"]),
    ("settings that often hold secrets", &[".env", ".env.*", ".netrc", ".ssh", ".aws"]),
];

/// Patterns of excluded files.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct Ignore {
    patterns: Vec<Pattern>,
}

#[derive(Clone, Debug)]
struct Pattern {
    /// As written, including `!`.
    written: String,
    /// Whether it includes paths again.
    back: bool,
    /// The parent directories of all paths it matches, up to the first wildcard.
    directories: Vec<String>,
    regex: Regex,
}

impl Ignore {
    /// Parses a `.dockerignore`; fails with all malformed patterns and their places.
    pub fn read(text: &str) -> Result<Self, Refusals> {
        let mut patterns = Vec::new();
        let mut refusals = Vec::new();
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let start = at;
            at += line.len();
            let line = if start == 0 { line.trim_start_matches('\u{feff}') } else { line };
            let written = line.trim();
            if line.starts_with('#') || written.is_empty() {
                continue;
            }
            match Pattern::new(written) {
                Ok(pattern) => patterns.push(pattern),
                Err(why) => {
                    let start = at - line.len() + line.find(written).unwrap_or(0);
                    refusals.push(
                        Refusal::new(start..start + written.len(), why)
                            .help("write `\\` before a literal character"),
                    );
                }
            }
        }
        if refusals.is_empty() { Ok(Self { patterns }) } else { Err(Refusals(refusals)) }
    }

    /// Parses a list of patterns, such as those of `--exclude`; fails with the first malformed one.
    pub fn of<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        Ok(Self { patterns: patterns.into_iter().map(Pattern::new).collect::<Result<_, _>>()? })
    }

    /// Whether nothing is excluded.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Whether a path, relative to the root, is excluded.
    pub fn excludes(&self, path: &Path) -> bool {
        let path = path.to_string_lossy();
        let path = path.trim_matches('/');
        let mut excluded = false;
        for pattern in &self.patterns {
            if pattern.back == excluded
                && (pattern.matches(path) || parents(path).any(|above| pattern.matches(above)))
            {
                excluded = !pattern.back;
            }
        }
        excluded
    }

    /// Whether something in an excluded directory may be included again, so that it must be searched.
    pub fn enters(&self, directory: &Path) -> bool {
        let directory = directory.to_string_lossy();
        let names: Vec<&str> = directory.split('/').filter(|name| !name.is_empty()).collect();
        self.patterns.iter().any(|pattern| {
            pattern.back && names.iter().zip(&pattern.directories).all(|(name, own)| name == own)
        })
    }
}

/// The parent directories of a path, outermost first.
fn parents(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}

impl Pattern {
    fn new(written: &str) -> Result<Self, String> {
        let (back, rest) = match written.trim().strip_prefix('!') {
            Some(rest) => (true, rest.trim()),
            None => (false, written.trim()),
        };
        if rest.is_empty() {
            return Err("`!` without a pattern".to_owned());
        }
        let clean = clean(rest);
        let regex = Regex::new(&expression(&clean)?).map_err(|_| format!("`{clean}` is too long"))?;
        let directories =
            clean.split('/').take_while(|name| !glob::is_pattern(name)).map(str::to_owned).collect();
        Ok(Self { written: written.to_owned(), back, directories, regex })
    }

    fn matches(&self, path: &str) -> bool {
        self.regex.is_match(path)
    }
}

/// Removes `.`, `..` if possible, and doubled and leading slashes from a path: Go's `filepath.Clean`.
fn clean(path: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." if names.last().is_some_and(|last| *last != "..") => {
                names.pop();
            }
            ".." if path.starts_with('/') => {}
            name => names.push(name),
        }
    }
    if names.is_empty() { ".".to_owned() } else { names.join("/") }
}

/// Converts a pattern to a regular expression.
fn expression(pattern: &str) -> Result<String, String> {
    // The rest after a leading `**` matches the end of the path at any depth, unless it has wildcards of its own.
    if let Some(rest) = pattern.strip_prefix("**")
        && !glob::is_pattern(rest)
    {
        let before = if rest.starts_with('/') { "^(?s:.*/)?" } else { "^(?s:.*)" };
        return Ok(format!("{before}{}$", regex::escape(rest.trim_start_matches('/'))));
    }
    let mut out = "^(?s)".to_owned();
    let mut rest = glob::tokens(pattern)?.into_iter().peekable();
    while let Some(token) = rest.next() {
        match token {
            Token::Star if rest.next_if_eq(&Token::Star).is_some() => {
                rest.next_if_eq(&Token::Literal('/'));
                out.push_str(if rest.peek().is_none() { ".*" } else { "(?:.*/)?" });
            }
            Token::Star => out.push_str("[^/]*"),
            Token::One => out.push_str("[^/]"),
            Token::Literal(c) => out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
            Token::Class(negated, ranges) => {
                // No name contains a NUL, so this has no effect; without it, a class of only `z-a` would be empty.
                out.push_str(if negated { "[^\\x00" } else { "[\\x00" });
                for (first, last) in ranges.into_iter().filter(|(first, last)| first <= last) {
                    out += &format!("\\x{{{:x}}}-\\x{{{:x}}}", u32::from(first), u32::from(last));
                }
                out.push(']');
            }
        }
    }
    out.push('$');
    Ok(out)
}

impl TryFrom<Vec<String>> for Ignore {
    type Error = String;

    fn try_from(patterns: Vec<String>) -> Result<Self, String> {
        Self::of(patterns.iter().map(String::as_str))
    }
}

impl From<Ignore> for Vec<String> {
    fn from(ignore: Ignore) -> Self {
        ignore.patterns.into_iter().map(|pattern| pattern.written).collect()
    }
}

#[cfg(test)]
mod tests;
