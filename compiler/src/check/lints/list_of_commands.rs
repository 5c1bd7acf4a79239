//! J0351: a list of words whose items are whole commands, or a flag with its value.

use jobc_schema::role::Run;

use crate::check::command::split;
use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Reports `[pip install numpy, python t.py]`, which starts a program named `pip install numpy`, and
/// `[python, t.py --lr 0.1]`, which looks for a file of that name.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in &view.roles {
        let Some(Run::Argv(words)) = role.spec.and_then(|spec| spec.run.as_ref()) else { continue };
        let found = match words.first() {
            Some(first) if has_blank(first) => Some(commands(role, words, first)),
            _ => joined(role, words),
        };
        if let Some(found) = found {
            sink.push(found);
        }
    }
}

/// The first word names the program, in a directory of PATH or by its path. A path may have blanks.
fn commands(role: &RoleView<'_>, words: &[String], first: &str) -> Diagnostic {
    let message = format!(
        "`{first}` in role `{}` is the name of one program: each item of the list `run` is one word of a single command",
        role.plan.name
    );
    let is_path = first.split_whitespace().next().is_some_and(|word| word.contains('/'));
    let found = if is_path {
        Diagnostic::warning(codes::LIST_OF_COMMANDS, message)
    } else {
        Diagnostic::error(codes::LIST_OF_COMMANDS, message)
    };
    found
        .at(&role.run_at().index(0), "")
        .note("write a text, which a shell runs: `run: |` with one command a line")
        .set(&role.run_at(), words.join(" && "))
}

/// A script and its arguments, or a flag and its value, as one word.
fn joined(role: &RoleView<'_>, words: &[String]) -> Option<Diagnostic> {
    let starts_script =
        words.first().is_some_and(|first| first.starts_with("python") || first == "bash" || first == "sh");
    let is_script = |word: &str| {
        [".py", ".sh"]
            .iter()
            .any(|end| word.split_whitespace().next().is_some_and(|name| name.ends_with(end)))
    };
    let at = (1..words.len()).find(|&at| {
        let (word, before) = (&words[at], &words[at - 1]);
        has_blank(word)
            && !before.starts_with('-')
            && (is_flag_and_value(word) || at == 1 && starts_script && is_script(word))
    })?;
    let split: Vec<String> = split(&words[at]).first()?.words.clone();
    let mut instead = words.to_vec();
    instead.splice(at..=at, split);
    let message = format!(
        "`{}` in role `{}` is one word of the command: the program gets it with its blanks",
        words[at], role.plan.name
    );
    Some(
        Diagnostic::warning(codes::LIST_OF_COMMANDS, message)
            .at(&role.run_at().index(at), "")
            .note("write each word as an item of its own, or the whole command as a text")
            .set(&role.run_at(), instead),
    )
}

fn has_blank(word: &str) -> bool {
    word.trim().contains(char::is_whitespace)
}

/// Whether a word is `--flag VALUE`.
fn is_flag_and_value(word: &str) -> bool {
    let parts: Vec<&str> = word.split_whitespace().collect();
    matches!(parts[..], [flag, value]
        if flag.starts_with('-') && flag[1..].starts_with(|c: char| c == '-' || c.is_ascii_alphabetic())
            && !flag.contains('=') && !value.starts_with('-'))
}
