//! What an instance runs.

use jobc_schema::Pointer;
use jobc_schema::plan::CommandPlan;
use jobc_schema::role::{KnownShell, Role, Run, Shell};

use super::text::Texts;
use crate::diagnostic::{Diagnostic, Sink, codes};

/// The command of a role.
pub(super) fn resolve_command(texts: &Texts<'_>, role: &Role, at: &Pointer, sink: &mut Sink) -> CommandPlan {
    report_contradictions(role, at, sink);
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

/// The folder the command starts in.
pub(super) fn resolve_workdir(
    texts: &Texts<'_>,
    role: &Role,
    at: &Pointer,
    sink: &mut Sink,
) -> Option<String> {
    let at = at.key("workdir");
    let workdir = texts.literal(role.workdir.as_ref()?, &at, sink);
    if !workdir.starts_with('/') {
        sink.push(
            Diagnostic::error(codes::COMMAND, format!("the folder `{workdir}` is not absolute"))
                .at(&at, "")
                .note(format!(
                    "write `/{}`: there is no folder it could be relative to",
                    workdir.trim_start_matches("./")
                )),
        );
    }
    Some(workdir)
}

fn report_contradictions(role: &Role, at: &Pointer, sink: &mut Sink) {
    let mut refuse = |key: &str, other: Option<&str>, message: &str, note: &str| {
        let mut diagnostic = Diagnostic::error(codes::COMMAND, message).at_key(&at.key(key), "");
        if let Some(other) = other {
            diagnostic = diagnostic.at_key(&at.key(other), "");
        }
        sink.push(diagnostic.note(note));
    };
    if role.run.is_some() && role.args.is_some() {
        refuse(
            "args",
            Some("run"),
            "`args` and `run` exclude each other",
            "`run` replaces the image's ENTRYPOINT and CMD; `args` keeps the ENTRYPOINT. Put the arguments into `run`, or remove it",
        );
    }
    if role.run.is_none() && role.setup.is_some() {
        refuse("setup", None, "`setup` has no `run` behind it", "write what runs after it as `run`");
    }
    if role.shell.is_some() && !matches!(role.run, Some(Run::Script(_))) {
        refuse(
            "shell",
            None,
            "`shell` has no script to run",
            "write `run` as a string; a list is run by no shell",
        );
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}
