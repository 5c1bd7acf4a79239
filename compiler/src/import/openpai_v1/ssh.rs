//! ssh between tasks, which OpenPAI 0.14 set up in every container whose image had sshd.
//!
//! Protocol v2 needs the plugin `ssh` for it. Its failure is ignored, as in 0.14: a job that never uses
//! ssh can run in an image without it.

use serde_json::{Value as Json, json};

use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::document::{Entry, Node, Value};
use crate::import::fields::Fields;
use crate::openpai::{PLUGINS, short};

/// The plugin for a job whose tasks may use ssh: it has more than one task, or its commands mention ssh.
pub(super) fn plugin(job: &Fields<'_>, sink: &mut Sink) -> Option<Json> {
    let field = job.entry("taskRoles")?;
    let has_one = job.node.get("extras").and_then(|extras| extras.get(PLUGINS)).is_some_and(|plugins| {
        plugins.items().iter().any(|plugin| plugin.get("plugin").and_then(Node::as_str) == Some("ssh"))
    });
    let roles = field.value.items();
    let uses_ssh = |role: &Node| text(role, "command").is_some_and(|command| command.contains("ssh"));
    if has_one || roles.iter().map(tasks).sum::<u64>() < 2 && !roles.iter().any(uses_ssh) {
        return None;
    }
    sink.push(note(field));
    roles.iter().filter_map(|role| other_name(role, roles)).for_each(|found| sink.push(found));
    Some(json!({"plugin": "ssh", "failurePolicy": "ignore", "parameters": {"jobssh": true}}))
}

fn note(field: &Entry) -> Diagnostic {
    let message = "the plugin `ssh` is added: tasks of protocol v1 could log in to each other";
    Diagnostic::info(codes::OPENPAI_PLACE, message).at_span(field.key_span, "").note(
        "the names `<role>-<index>` are known everywhere; if an image has no sshd, OpenPAI tries to install it, and on other targets a task prints a message and continues without it",
    )
}

/// The warning for commands that refer to tasks of a role whose name has characters that OpenPAI now drops.
fn other_name(role: &Node, roles: &[Node]) -> Option<Diagnostic> {
    let name = text(role, "name").filter(|name| short(name) != *name)?;
    let alias = format!("{name}-");
    let names_it = |command: &&Node| {
        let mut parts = command.as_str().unwrap_or_default().split(alias.as_str()).skip(1);
        parts.any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let command = roles.iter().filter_map(|role| role.get("command")).find(names_it)?;
    let now = short(name);
    let message = format!("the tasks of `{name}` are named `{now}-0` and so on, not `{alias}0`");
    Some(Diagnostic::warning(codes::OPENPAI_RENAMED, message).at_span(command.span, "").note(format!(
        "protocol v2 keeps letters and digits of a role's name; write `{now}-` in the command"
    )))
}

fn text<'a>(role: &'a Node, key: &str) -> Option<&'a str> {
    role.get(key).and_then(Node::as_str)
}

fn tasks(role: &Node) -> u64 {
    match role.get("taskNumber").map(|number| &number.value) {
        Some(Value::Number { number, .. }) => number.as_u64().unwrap_or(1),
        _ => 1,
    }
}
