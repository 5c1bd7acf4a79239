//! J0349: a script that uses an axis of a matrix as a variable of the shell, which nothing sets.

use jobc_schema::Pointer;

use crate::check::command::variables;
use crate::diagnostic::{Diagnostic, Location, Sink, codes};
use crate::document::{Document, Node, Value};

/// Warns of `$lr` and `${lr}` in scripts of a job or a role with the axis `lr`.
pub(crate) fn check(document: &Document, sink: &mut Sink) {
    let root = &document.root;
    let of_job = axes(root);
    for role in root.get("roles").map_or(&[][..], Node::entries) {
        let names: Vec<&str> = of_job.iter().copied().chain(axes(&role.value)).collect();
        let texts =
            ["setup", "run"].map(|key| (key, role.value.get(key).and_then(Node::as_str).unwrap_or_default()));
        if names.is_empty() || !is_shell(&role.value, root) {
            continue;
        }
        let all = texts.map(|(_, text)| text).join("\n");
        let has_variable =
            |node: &Node, name: &str| node.get("env").is_some_and(|env| env.get(name).is_some());
        let is_set = |name: &str| {
            has_variable(root, name)
                || has_variable(&role.value, name)
                || [
                    format!("{name}="),
                    format!("for {name}"),
                    format!("read {name}"),
                    format!("read -r {name}"),
                ]
                .iter()
                .any(|setter| all.contains(setter))
        };
        for (key, text) in texts {
            for (name, at) in variables(text).filter(|(name, _)| names.contains(name)) {
                let plain = [format!("${{{name}}}"), format!("${name}")];
                let Some(used) = plain.iter().find(|used| text[at..].starts_with(*used)) else { continue };
                if is_set(name) {
                    continue;
                }
                let pointer = Pointer::ROOT.keys(["roles", &role.key, key]);
                let place = Location::inside(&pointer, text, at..at + used.len());
                let message = format!("`{used}` is a variable of the shell, and nothing sets it");
                let found =
                    Diagnostic::warning(codes::UNSET_VARIABLE, message).at_place(place.clone(), "").note(
                        format!("`{name}` is an axis of the matrix; its value is `${{{{ matrix.{name} }}}}`"),
                    );
                sink.push(found.write(place, &format!("${{{{ matrix.{name} }}}}")));
            }
        }
    }
}

/// The names of the axes of a job or role.
fn axes(node: &Node) -> Vec<&str> {
    let Some(matrix) = node.get("matrix") else { return vec![] };
    let long = matrix.get("axes").filter(|axes| matches!(axes.value, Value::Mapping(_)));
    long.unwrap_or(matrix).entries().iter().map(|entry| entry.key.as_str()).collect()
}

/// Whether the scripts of a role are for a shell: its default is one.
pub(super) fn is_shell(role: &Node, root: &Node) -> bool {
    let shell = role.get("shell").or_else(|| root.get("shell"));
    let program = shell.map(|shell| shell.items().first().unwrap_or(shell));
    program.and_then(Node::as_str).is_none_or(|program| program.ends_with("sh"))
}
