//! How `run`, `args`, `shell` and `setup` of a role can be combined.

use jobc_schema::Pointer;

use crate::diagnostic::{Diagnostic, codes};
use crate::document::{Node, Value};

use super::super::report::Report;
use super::keys::exclusive;

/// Suggests appending the arguments to the command, if both are lists of words.
fn with_arguments(diagnostic: Diagnostic, at: &Pointer, role: &Node, report: &Report<'_>) -> Diagnostic {
    let plain = |text: &&str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c))
    };
    let words = |key: &str| -> Option<Vec<&str>> {
        let node = role.get(key)?;
        let words: Option<Vec<&str>> = match &node.value {
            Value::String(text) if !text.contains('\n') => Some(text.split_whitespace().collect()),
            Value::Sequence(items) => items.iter().map(Node::as_str).collect(),
            _ => None,
        };
        words.filter(|words| words.iter().all(plain))
    };
    let (Some(mut run), Some(args)) = (words("run"), words("args")) else { return diagnostic };
    run.extend(args);
    let diagnostic = report.remove(diagnostic, &at.key("args"));
    report.and_write(diagnostic, &at.key("run"), &run.join(" "))
}

/// Checks the commands of a role.
pub(super) fn check(at: &Pointer, role: &Node, report: &mut Report<'_>) {
    let run = role.get("run");
    if run.is_some() && role.get("args").is_some() {
        let why = "`args` keeps the image's ENTRYPOINT and `run` replaces it; write the arguments into `run`";
        if let Some(diagnostic) = exclusive(report, at, &["run", "args"], why) {
            report.push(with_arguments(diagnostic, at, role, report));
        }
    }
    // A template may provide what is missing here.
    if role.get("uses").is_some() {
        return;
    }
    let setup = role.get("setup");
    if setup.is_some() && run.is_none() {
        report.push(
            Diagnostic::error(codes::NO_SCRIPT, "`setup` has no `run` to go before")
                .at_place(report.key(&at.key("setup")), "")
                .note("`setup` cannot run before the command of the image; write the command as `run`"),
        );
    }
    if role.get("shell").is_none() || setup.is_some() {
        return;
    }
    let why = match run.map(|run| &run.value) {
        Some(Value::Sequence(_)) => {
            "`run` is a list of arguments, which runs without a shell; write a string to have a script"
        }
        None => "it does not run the command of the image; write a `run`",
        Some(_) => return,
    };
    report.push(
        Diagnostic::error(codes::NO_SCRIPT, "`shell` has no script to run")
            .at_place(report.key(&at.key("shell")), "")
            .note(why),
    );
}
