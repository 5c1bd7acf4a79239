//! J0319: a program whose failure is lost in a pipe.

use jobc_schema::role::Run;

use crate::check::command::{Command, hides_pipes};
use crate::check::view::View;
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Warns of `python train.py | tee log` in a shell without `pipefail`: the task succeeds where the program failed.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in view.roles.iter().filter(|role| hides_pipes(role.plan)) {
        let Some(command) = role.commands.iter().find(|command| command.piped && works(command)) else {
            continue;
        };
        let message = format!(
            "a failure of `{}` in role `{}` is lost in the pipe: the task ends with the exit code of the last program",
            command.program(),
            role.plan.name
        );
        let known = role.spec.is_some_and(|spec| {
            matches!(spec.shell, Some(jobc_schema::role::Shell::Known(jobc_schema::role::KnownShell::Sh)))
        });
        let advice = if known {
            "leave `shell: sh` out: the default, bash, runs with `pipefail`"
        } else {
            "write `run` as a string, which bash runs with `pipefail`, or begin the script with `set -o pipefail`"
        };
        let found = Diagnostic::warning(codes::PIPE_FAILURE, message).at(&role.run_at(), "");
        let found = match role.spec.and_then(|spec| spec.run.as_ref()) {
            // `[sh, -c, SCRIPT]`
            Some(Run::Argv(words)) => match words.last().filter(|script| !script.contains('\n')) {
                Some(script) => found.set(&role.run_at(), script.clone()),
                None => found,
            },
            _ => found.set(&role.at().key("shell"), "bash"),
        };
        sink.push(
            found
                .note(advice)
                .note("where the image has no bash, write to a file: `python train.py > log 2>&1`"),
        );
    }
}

/// Whether a program does the work of a task, unlike `echo` or `ls`.
fn works(command: &Command) -> bool {
    command.launcher().is_some()
        || command.is_python()
        || command.words.first().is_some_and(|word| word.contains('/') || word.starts_with('$'))
}
