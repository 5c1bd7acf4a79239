//! The arguments of an instruction: a JSON array, or text.

use super::super::forms::{Command, Word};
use super::super::line::Part;
use super::super::split;
use super::scope::Scope;

/// A command line in either form.
pub(super) fn command(rest: Part<'_>, scope: &mut Scope<'_>) -> Option<Command> {
    if rest.is_empty() {
        return Some(Command::Exec(Vec::new()));
    }
    match split::json(rest) {
        Some(Ok(words)) => Some(Command::Exec(words)),
        Some(Err(())) => {
            not_strings(rest, scope);
            None
        }
        None => {
            almost_json(rest, scope);
            Some(Command::Shell(rest.text().to_owned()))
        }
    }
}

/// A JSON array of strings, or words separated by blanks.
pub(super) fn list(rest: Part<'_>, scope: &mut Scope<'_>) -> Option<Vec<Word>> {
    match split::json(rest) {
        Some(Ok(words)) => Some(words.into_iter().map(|text| Word { text, span: rest.span() }).collect()),
        Some(Err(())) => {
            not_strings(rest, scope);
            None
        }
        None => {
            almost_json(rest, scope);
            Some(split::by_blanks(rest).iter().map(Part::word).collect())
        }
    }
}

pub(super) fn not_strings(rest: Part<'_>, scope: &mut Scope<'_>) {
    scope.problems.wrong(
        rest.span(),
        "the JSON form takes strings only",
        "put double quotes around every argument: `[\"sleep\", \"5\"]`",
    );
}

pub(super) fn almost_json(rest: Part<'_>, scope: &mut Scope<'_>) {
    let text = rest.text();
    // `[ -f x ] && …` is a shell command.
    if text.starts_with('[') && text.ends_with(']') && !text.starts_with("[ ") && !text.starts_with("[[") {
        scope.problems.remark(
            rest.span(),
            "this is not JSON, so it is read as text",
            "the JSON form has double quotes, and no comma at its end: `[\"a\", \"b\"]`",
        );
    }
}
