//! J0384: an environment of conda that the shell cannot activate.

use jobc_schema::plan::CommandPlan;

use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Words of a script that make `conda activate` known to its shell.
const HOOKS: [&str; 6] = ["conda.sh", "hook", "bashrc", "profile", "source activate", "conda init"];

/// What does so in a script.
const HOOK: &str = r#". "$(conda info --base)/etc/profile.d/conda.sh""#;

/// Warns about `conda activate` in a shell that does not have it: it is a function which interactive shells get.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in &view.roles {
        let program = role.commands.iter().find_map(|command| match command.words.as_slice() {
            [program, verb, ..] if verb == "activate" => {
                ["conda", "mamba"].into_iter().find(|own| own == program)
            }
            _ => None,
        });
        let Some(program) = program.filter(|_| !is_known(role)) else { continue };
        let words = format!("{program} activate");
        let message = format!("`{words}` fails: it is a function that only interactive shells get");
        sink.push(
            Diagnostic::warning(codes::CONDA_ACTIVATE, message)
                .at(&role.run_at(), "")
                .note(format!("read it first, by `{HOOK}`, or write `{program} run -n NAME COMMAND`"))
                .reword(&role.run_at(), &words, &format!("{HOOK} && conda activate")),
        );
    }
}

/// Whether the shell may have read the function.
fn is_known(role: &RoleView<'_>) -> bool {
    let reads_profile = match &role.plan.command {
        CommandPlan::Script { shell, .. } => shell.iter().any(|word| {
            word == "--login" || word.starts_with('-') && !word.starts_with("--") && word.contains(['l', 'i'])
        }),
        _ => false,
    };
    reads_profile
        || HOOKS.iter().any(|word| role.text.contains(word))
        || ["BASH_ENV", "ENV"].iter().any(|name| role.plan.env.contains_key(*name))
}
