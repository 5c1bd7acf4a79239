//! J0332: a secret in plain text.

use jobc_schema::Pointer;

use super::{Path, strings};
use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::document::Document;

/// Ends of variable names that hold secrets.
const NAMES: [&str; 11] = [
    "TOKEN",
    "PASSWORD",
    "PASSWD",
    "API_KEY",
    "APIKEY",
    "SECRET",
    "SECRET_KEY",
    "SECRET_ACCESS_KEY",
    "PRIVATE_KEY",
    "CREDENTIALS",
    "ACCESS_KEY",
];

/// Flags whose value is a secret.
const FLAGS: [&str; 6] = ["--password", "--token", "--api-key", "--api_key", "--secret", "--access-token"];

/// Known token prefixes, with the minimum number of characters that follow.
const SHAPES: [(&str, usize, &str); 12] = [
    ("ghp_", 30, "a GitHub token"),
    ("gho_", 30, "a GitHub token"),
    ("ghs_", 30, "a GitHub token"),
    ("github_pat_", 30, "a GitHub token"),
    ("hf_", 30, "a Hugging Face token"),
    ("glpat-", 20, "a GitLab token"),
    ("AKIA", 16, "an AWS access key"),
    ("ASIA", 16, "an AWS access key"),
    ("sk-", 20, "an API key"),
    ("xoxb-", 20, "a Slack token"),
    ("xoxp-", 20, "a Slack token"),
    ("pypi-", 50, "a PyPI token"),
];

/// Warns of values that look like secrets: they would be in the plan, in artifacts and in process lists.
///
/// No message repeats a value.
pub(crate) fn check(document: &Document, sink: &mut Sink) {
    strings(&document.root, &mut Path::new(), &mut |path, text| {
        if let Some(found) = look(path, text) {
            sink.push(found);
        }
    });
}

fn look(path: &Path<'_>, text: &str) -> Option<Diagnostic> {
    let report = |message| report(&Pointer::ROOT.keys(path.iter().map(AsRef::as_ref)), message);
    if let Some(what) = token(text) {
        let message = format!("{what} in plain text: it would be in every file that jobc writes");
        return Some(report(message).note("revoke the token: everyone who can read this file has it"));
    }
    let [.., above, name] = &path[..] else { return None };
    let (above, name) = (above.as_ref(), name.as_ref());
    if above == "env" && is_secret_name(name) && is_literal(text) {
        let message = format!(
            "the variable `{name}` looks like a secret in plain text: it would be in every file that jobc writes"
        );
        return Some(report(message));
    }
    let runs = matches!(name, "run" | "setup") || matches!(above, "run" | "args");
    let flag = if runs { flag(text) } else { None }?;
    let message =
        format!("`{flag}` has a value in plain text: it would be in artifacts and in the process list");
    Some(report(message))
}

fn report(at: &Pointer, message: String) -> Diagnostic {
    Diagnostic::warning(codes::SECRET_WRITTEN_OUT, message)
        .at(at, "")
        .note("declare it as `secrets: {NAME: {env: VARIABLE}}` and write `${{ secrets.NAME }}` in `env`")
}

/// What kind of token a text holds, where one is known by its shape.
fn token(text: &str) -> Option<&'static str> {
    if text.contains("-----BEGIN ") && text.contains("PRIVATE KEY-----") {
        return Some("a private key");
    }
    SHAPES.iter().find(|(start, length, _)| holds(text, start, *length)).map(|(_, _, what)| *what)
}

/// Whether a word of the text has this prefix and then this many letters and digits.
fn holds(text: &str, start: &str, length: usize) -> bool {
    text.match_indices(start).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let rest = &text[at + start.len()..];
        let end =
            rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-').unwrap_or(rest.len());
        // `sk-learn-model-for-everything` is not a key: keys contain digits.
        end >= length
            && rest[..end].bytes().any(|b| b.is_ascii_digit())
            && !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '-')
    })
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    NAMES
        .iter()
        .any(|end| name.strip_suffix(end).is_some_and(|before| before.is_empty() || before.ends_with('_')))
}

/// Whether a value is neither a reference nor a placeholder word.
fn is_literal(text: &str) -> bool {
    let nothing = ["", "true", "false", "none", "null", "no", "yes", "0", "1", "changeme", "dummy", "empty"];
    let refers = text.contains("${{") || text.starts_with(['$', '/', '~', '<']);
    !refers && !nothing.contains(&text.to_ascii_lowercase().as_str())
}

/// The first flag of a command whose value is a secret in plain text.
fn flag(text: &str) -> Option<&'static str> {
    FLAGS.into_iter().find(|flag| {
        text.match_indices(flag).any(|(at, _)| {
            let rest = &text[at + flag.len()..];
            let Some(value) = rest.strip_prefix(['=', ' ']) else { return false };
            let value = value.trim_start_matches(['"', '\'']);
            let end = value
                .find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ';' | '\\'))
                .unwrap_or(value.len());
            let value = &value[..end];
            is_literal(value) && !value.starts_with('-')
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_shapes() {
        for (name, is) in [
            ("WANDB_API_KEY", true),
            ("HF_TOKEN", true),
            ("token", true),
            ("MYSQL_ROOT_PASSWORD", true),
            ("AWS_SECRET_ACCESS_KEY", true),
            ("TOKENIZERS_PARALLELISM", false),
            ("HF_TOKEN_PATH", false),
            ("NOTOKEN", false),
            ("MAX_TOKENS", false),
        ] {
            assert_eq!(is_secret_name(name), is, "{name}");
        }
        let shape = |text: &str| token(text).is_some();
        // Assembled here so that no secret scanner takes them for real ones.
        assert!(shape(&format!("echo {}{}", "ghp_", "a1".repeat(18))));
        assert!(shape(&format!("K={}{}", "AKIA", "ABCDEFGH12345678")));
        assert!(!shape("sk-learn-model-for-everything-else"));
        assert!(!shape("risk-1234567890123456789012345"));
        assert!(!shape("hf_hub_download"));
        assert_eq!(flag("mysql --password=hunter2"), Some("--password"));
        assert_eq!(flag("x --token \"abc\""), Some("--token"));
        assert_eq!(flag("x --token $TOKEN"), None);
        assert_eq!(flag("x --token=${{ params.t }}"), None);
        assert_eq!(flag("x --tokenizer=bert"), None);
        assert_eq!(flag("jupyter lab --token=''"), None);
    }
}
