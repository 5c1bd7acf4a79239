//! Joins lines into instructions, keeping the place in the file of every byte.
//!
//! A line that ends with the escape character continues on the next; comments and empty lines between are dropped,
//! leading blanks of a later line are kept. Leading comments may be parser directives.

use super::checks::Checks;
use super::heredoc;
use super::line::{Line, Physical, blanks_after_escape};
use super::refusal::{Refusal, Rule};
use super::rules::Lint;

/// Parser directives in leading comments.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Directives {
    /// `# escape=`.
    pub(super) escape: char,
    /// `# check=`.
    pub(super) checks: Checks,
}

/// The parts of a file.
pub(super) struct ParsedLines {
    pub(super) directives: Directives,
    pub(super) lines: Vec<Line>,
    pub(super) refusals: Vec<Refusal>,
    pub(super) remarks: Vec<Refusal>,
}

/// Parses a whole file.
pub(super) fn read(text: &str) -> ParsedLines {
    let mut rest =
        Physical { text, at: if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 } };
    let mut read = ParsedLines {
        directives: Directives { escape: '\\', ..Directives::default() },
        lines: Vec::new(),
        refusals: Vec::new(),
        remarks: Vec::new(),
    };
    directives(&mut rest, &mut read);
    instructions(&mut rest, &mut read);
    read
}

/// Parses the instruction of an `ONBUILD`.
pub(super) fn trigger(text: &str, escape: char) -> ParsedLines {
    let mut read = ParsedLines {
        directives: Directives { escape, ..Directives::default() },
        lines: Vec::new(),
        refusals: Vec::new(),
        remarks: Vec::new(),
    };
    instructions(&mut Physical { text, at: 0 }, &mut read);
    read
}

fn directives(rest: &mut Physical<'_>, read: &mut ParsedLines) {
    let mut seen = Vec::new();
    while let Some((at, line)) = rest.next() {
        let Some((name, value)) = directive(line.trim()) else {
            rest.back(at);
            return;
        };
        let name = name.to_ascii_lowercase();
        let start = at + line.find(value).unwrap_or(0);
        let span = start..start + value.len();
        if seen.contains(&name) {
            read.refusals
                .push(Refusal::new(span, format!("there are two directives `{name}`")).help("keep one"));
            continue;
        }
        match name.as_str() {
            "escape" => match value {
                "\\" => {}
                "`" => read.directives.escape = '`',
                _ => read.refusals.push(
                    Refusal::new(span, format!("`{value}` cannot be the escape character"))
                        .help("write a backslash or a grave accent"),
                ),
            },
            "syntax" if !is_docker(value) => read.refusals.push(
                Refusal::new(span, format!("unknown frontend `{value}` of `# syntax=`"))
                    .help("write `docker/dockerfile:1` or remove the line; for other frontends use `--builder docker`"),
            ),
            "check" => match Checks::read(value) {
                Ok(checks) => read.directives.checks = checks,
                Err(why) => read.remarks.push(
                    Refusal::new(span, why).help("write `skip=NAME,…`, `error=true` or `experimental=NAME,…`"),
                ),
            },
            "syntax" => {}
            _ => {
                rest.back(at);
                return;
            }
        }
        seen.push(name);
    }
}

/// `# name = value`.
fn directive(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.strip_prefix('#')?.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    let good = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric());
    (good && !value.is_empty()).then_some((name, value))
}

/// Whether a `# syntax=` names version 1 of Docker's own language.
fn is_docker(value: &str) -> bool {
    // The words after the first are arguments for the frontend.
    let value = value.split_whitespace().next().unwrap_or_default();
    let value = value.strip_prefix("docker.io/").unwrap_or(value);
    let Some(version) =
        value.strip_prefix("docker/dockerfile").map(|rest| rest.strip_prefix("-upstream").unwrap_or(rest))
    else {
        return false;
    };
    let version = version.split('@').next().unwrap_or_default();
    let of_one = |version: &str| {
        matches!(version, "latest" | "labs" | "master" | "experimental" | "upstream")
            || matches!(version, "latest-labs" | "master-labs" | "master-experimental")
            || version.split(['.', '-']).next().is_some_and(|major| major == "1")
    };
    version.is_empty() || version.strip_prefix(':').is_some_and(of_one)
}

fn instructions(rest: &mut Physical<'_>, read: &mut ParsedLines) {
    let escape = read.directives.escape;
    while let Some((at, line)) = rest.next() {
        let content = line.trim_start();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        let start = at + line.len() - content.len();
        let mut joined =
            Line { text: String::new(), pieces: Vec::new(), heredocs: Vec::new(), span: start..start };
        let mut goes_on = joined.push(start, content, escape);
        check_blanks(start, content, escape, read);
        let mut gap = None;
        while goes_on {
            let Some((at, line)) = rest.next() else { break };
            if line.trim().is_empty() {
                gap = gap.or(Some(at..at + line.trim_end_matches(['\r', '\n']).len()));
            } else if !line.trim_start().starts_with('#') {
                goes_on = joined.push(at, line, escape);
                check_blanks(at, line, escape, read);
            }
        }
        if joined.text.trim().is_empty() {
            continue;
        }
        if let Some(gap) = gap {
            read.remarks.push(
                Refusal::new(gap, "an empty line inside an instruction")
                    .help("remove it, or begin it with `#`: the instruction continues after it")
                    .rule(Rule::Lint(Lint::NoEmptyContinuation)),
            );
        }
        match heredoc::take(&joined, rest) {
            Ok(heredocs) => joined.heredocs = heredocs,
            Err(refusal) => read.refusals.push(refusal),
        }
        if let Some(last) = joined.heredocs.last() {
            joined.span.end = last.end;
        }
        read.lines.push(joined);
    }
}

/// Reports no-break and other blanks after the escape character: the rest would be an instruction of its own.
fn check_blanks(at: usize, line: &str, escape: char, read: &mut ParsedLines) {
    if let Some(span) = blanks_after_escape(line, escape) {
        let c = line[span.start..].chars().find(|c| !matches!(c, ' ' | '\t')).unwrap_or(' ');
        let message = format!(
            "the blank U+{:04X} after `{escape}` keeps the line from continuing on the next",
            u32::from(c)
        );
        let help =
            format!("remove it: `{escape}` must be the last character of the line, or spaces must follow it");
        read.refusals.push(Refusal::new(at + span.start..at + span.end, message).help(help));
    }
}

#[cfg(test)]
mod tests;
