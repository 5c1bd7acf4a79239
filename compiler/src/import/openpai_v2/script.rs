//! The script of a task role: its commands between those of the deployment, and those of plugins around them.
//!
//! OpenPAI joins the commands with newlines and runs them in one `bash -o errexit -o nounset -o pipefail`, like
//! `run`. Commands of plugins run in separate processes, so they are put in parentheses: a `cd` in one does not
//! affect the others.

use super::template::{RenderedText, Scope};
use crate::diagnostic::Sink;
use crate::document::Node;
use crate::openpai::{Variables, with_variables};

/// Commands of a plugin.
pub(super) struct PluginCommands<'a> {
    pub(super) before: bool,
    pub(super) commands: Vec<ScriptPart<'a>>,
    /// Whether their failure is ignored.
    pub(super) may_fail: bool,
}

/// A command of the file, or one that replaces a plugin.
pub(super) enum ScriptPart<'a> {
    Written(&'a Node, &'a str),
    Made(String),
}

/// The converted commands of a role.
#[derive(Default)]
pub(super) struct Script {
    pub(super) setup: Option<String>,
    pub(super) run: String,
    pub(super) secrets: Variables,
}

/// Assembles a script: commands that plugins run before become `setup`, the rest `run`.
pub(super) fn assemble(
    commands: &[(&Node, &str)],
    around: &[PluginCommands<'_>],
    scope: &Scope<'_>,
    sink: &mut Sink,
) -> Script {
    let mut out = Script::default();
    let mut setup: Vec<String> = Vec::new();
    let mut run: Vec<String> = Vec::new();
    for (node, text) in commands {
        run.push(scope.fill(text, node.span, sink).expression.trim().to_owned());
    }
    let (before, after): (Vec<_>, Vec<_>) = around.iter().partition(|part| part.before);
    for part in before {
        setup.push(part.script(scope, sink));
    }
    // Undo in reverse order.
    for part in after.iter().rev() {
        run.push(part.script(scope, sink));
    }
    let run = with_variables(&run.join("\n"), &mut out.secrets);
    let setup_text = with_variables(&setup.join("\n"), &mut out.secrets);
    // The working directory that a container starts in, which OpenPAI's runtime restores.
    let work_dir = "export PAI_WORK_DIR=\"$PWD\"";
    let setup = if run.contains("PAI_WORK_DIR") || setup_text.contains("PAI_WORK_DIR") {
        Some(if setup.is_empty() { work_dir.to_owned() } else { format!("{work_dir}\n{setup_text}") })
    } else {
        (!setup.is_empty()).then_some(setup_text)
    };
    out.setup = setup.map(ended);
    out.run = ended(run);
    out
}

/// Adds a trailing newline to several lines, as a block scalar does.
fn ended(mut text: String) -> String {
    if text.contains('\n') && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

impl PluginCommands<'_> {
    fn script(&self, scope: &Scope<'_>, sink: &mut Sink) -> String {
        let lines: Vec<String> = self
            .commands
            .iter()
            .map(|text| match text {
                ScriptPart::Written(node, text) => {
                    scope.fill(text, node.span, sink).expression.trim().to_owned()
                }
                ScriptPart::Made(text) => text.clone(),
            })
            .collect();
        let lines = lines.join("\n");
        if self.may_fail { format!("(\n{lines}\n) || true") } else { format!("(\n{lines}\n)") }
    }
}

/// A list of commands with values substituted, as kept for converting the job back.
pub(super) fn filled(commands: &[(&Node, &str)], scope: &Scope<'_>) -> Vec<String> {
    // Errors were reported when the script was assembled.
    let mut quiet = Sink::new();
    commands
        .iter()
        .map(|(node, text)| {
            let RenderedText { value, .. } = scope.fill(text, node.span, &mut quiet);
            value
        })
        .collect()
}
