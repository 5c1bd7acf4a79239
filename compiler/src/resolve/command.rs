//! What an instance runs.

use jobc_schema::Pointer;
use jobc_schema::plan::CommandPlan;
use jobc_schema::role::{KnownShell, Role, Run, Shell};

use super::text::Texts;
use crate::diagnostic::{Diagnostic, Location, Sink, codes};

/// The command of a role.
pub(super) fn resolve_command(texts: &Texts<'_>, role: &Role, at: &Pointer, sink: &mut Sink) -> CommandPlan {
    report_shell(role, at, sink);
    let setup = role.setup.as_ref().map(|setup| texts.text(setup, &at.key("setup"), sink));
    match (&role.run, &role.args) {
        (Some(Run::Script(script)), _) => CommandPlan::Script {
            shell: match &role.shell {
                None | Some(Shell::Known(KnownShell::Bash)) => words(&["bash", "-euo", "pipefail", "-c"]),
                Some(Shell::Known(KnownShell::Sh)) => words(&["/bin/sh", "-eu", "-c"]),
                Some(Shell::Argv(argv)) => argv.clone(),
            },
            setup,
            script: texts.text(script, &at.key("run"), sink),
        },
        (Some(Run::Argv(argv)), _) => {
            CommandPlan::Argv { argv: texts.texts(argv, &at.key("run"), sink), setup }
        }
        (None, Some(args)) => CommandPlan::Args(texts.texts(args, &at.key("args"), sink)),
        (None, None) => CommandPlan::Image {},
    }
}

/// The directory the command starts in.
pub(super) fn resolve_workdir(
    texts: &Texts<'_>,
    role: &Role,
    at: &Pointer,
    sink: &mut Sink,
) -> Option<String> {
    let at = at.key("workdir");
    let workdir = texts.literal(role.workdir.as_ref()?, &at, sink);
    if !workdir.starts_with('/') {
        let instead = format!("/{}", workdir.trim_start_matches("./"));
        sink.push(
            Diagnostic::error(codes::COMMAND, format!("the directory `{workdir}` is not absolute"))
                .at(&at, "")
                .note(format!("write `{instead}`: a relative directory is not allowed"))
                .write(Location::inside(&at, &workdir, 0..workdir.len()), &instead),
        );
    }
    Some(workdir)
}

/// Reports a `shell` with a list and `setup`: only scripts can choose a shell.
fn report_shell(role: &Role, at: &Pointer, sink: &mut Sink) {
    if role.shell.is_some() && matches!(role.run, Some(Run::Argv(_))) {
        sink.push(
            Diagnostic::error(codes::COMMAND, "`shell` does not go with a `run` that is a list")
                .at_key(&at.key("shell"), "")
                .at(&at.key("run"), "runs without a shell")
                .note("write `run` as a string; before a list, `setup` is run by bash"),
        );
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}
