//! J0351: a list of words whose items are whole commands, or a flag with its value.

use jobc_schema::role::Run;

use crate::check::command::split;
use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Reports `[pip install numpy, python t.py]`, which starts a program named `pip install numpy`, and
/// `[python, t.py --lr 0.1]`, which looks for a file of that name.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in &view.roles {
        let Some(spec) = role.spec else { continue };
        let found = match (&spec.run, &spec.args) {
            (Some(Run::Argv(words)), _) => match words.first() {
                Some(first) if has_blank(first) => Some(commands(role, words, first)),
                _ => joined(role, words, 1),
            },
            (None, Some(args)) => joined(role, args, 0),
            _ => None,
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

/// A script and its arguments, or a flag and its value, as one word of those from a place on.
fn joined(role: &RoleView<'_>, words: &[String], from: usize) -> Option<Diagnostic> {
    let starts_script =
        words.first().is_some_and(|first| first.starts_with("python") || first == "bash" || first == "sh");
    let is_script = |word: &str| {
        [".py", ".sh"]
            .iter()
            .any(|end| word.split_whitespace().next().is_some_and(|name| name.ends_with(end)))
    };
    let is_joined = |at: usize| {
        let word = &words[at];
        let is_value = at > 0 && is_flag(&words[at - 1]) && !has_blank(&words[at - 1]);
        has_blank(word)
            && !is_value
            && (is_flag_and_value(word) || at == 1 && starts_script && is_script(word))
    };
    let at = (from..words.len()).find(|&at| is_joined(at))?;
    let instead: Option<Vec<Vec<String>>> = (0..words.len())
        .map(|at| {
            let is_split = at >= from && is_joined(at);
            if is_split {
                Some(split(&words[at]).first()?.words.clone())
            } else {
                Some(vec![words[at].clone()])
            }
        })
        .collect();
    let message = format!(
        "`{}` in role `{}` is one word of the command: the program gets it with its blanks",
        words[at], role.plan.name
    );
    Some(
        Diagnostic::warning(codes::LIST_OF_COMMANDS, message)
            .at(&role.run_at().index(at), "")
            .note(if from == 0 {
                "write each word as an item of its own"
            } else {
                "write each word as an item of its own, or the whole command as a text"
            })
            .set(&role.run_at(), instead?.concat()),
    )
}

fn has_blank(word: &str) -> bool {
    word.trim().contains(char::is_whitespace)
}

/// Whether a word is `--flag VALUE`.
fn is_flag_and_value(word: &str) -> bool {
    let parts: Vec<&str> = word.split_whitespace().collect();
    matches!(parts[..], [flag, value]
        if is_flag(flag) && !flag.contains('=') && !value.starts_with('-'))
}

/// Whether a word is one option, whose value may be the next one.
fn is_flag(word: &str) -> bool {
    let is_name = |rest: &str| rest.starts_with(|c: char| c == '-' || c.is_ascii_alphabetic());
    word.strip_prefix('-').is_some_and(is_name)
}
