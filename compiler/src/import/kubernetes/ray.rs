//! What a RayJob says of its command and of the environment of its tasks.

use serde_json::Value as Json;

use crate::diagnostic::Sink;
use crate::document::Node;
use crate::parse::parse;
use crate::source::{Source, Sources, Span};

use super::super::command::{Command, command};
use super::super::container::Role;
use super::super::container::variable;
use super::super::draft::Draft;
use super::super::nodes::{sequence, string};
use super::super::values::scalar;
use super::facts::{Fact, Facts};
use super::group::Group;

/// Writes the command of the head and the environment of all roles.
pub(super) fn write(groups: &[Group], facts: &mut Facts, draft: &mut Draft<'_>) {
    let Some(head) = groups.first() else { return };
    if let Some((value, part)) = facts.take(Fact::Entrypoint) {
        // The program of the container is Ray itself.
        for key in ["args", "run", "shell"] {
            draft.remove(&["roles", &head.role, key]);
        }
        let text = scalar(&value).unwrap_or_default();
        draft.field(&["roles", &head.role, "run"], part, string(value.span, script(text.trim_end())));
    } else {
        draft.refuse(
            head.at,
            "the RayJob has no `entrypoint`: its command is submitted by hand",
            "write the command as `entrypoint`",
        );
    }
    let Some((value, part)) = facts.take(Fact::Packages) else { return };
    let mut sources = Sources::new();
    let id = sources.add(Source::new("runtimeEnvYAML.yaml", scalar(&value).unwrap_or_default()));
    let Some(environment) = parse(&sources, id, &mut Sink::new()) else {
        return draft.invalid(part, "`runtimeEnvYAML` is not YAML", "");
    };
    for entry in environment.root.entries() {
        match entry.key.as_str() {
            "env_vars" => {
                for variable_entry in entry.value.entries() {
                    let text = scalar(&variable_entry.value).unwrap_or_default();
                    for group in groups {
                        let mut role = Role { draft, name: &group.role };
                        variable(&mut role, &variable_entry.key, Some(&text), part);
                    }
                }
            }
            "pip" | "uv" => packages(&entry.value, part, draft),
            "working_dir" | "py_modules" => draft.changed(
                part,
                format!("`{}` of Ray's runtime environment is not fetched", entry.key),
                "write `code: .` in the job file, next to a copy of that directory",
            ),
            key => draft.refuse(
                part,
                format!("`{key}` of Ray's runtime environment"),
                "write it in an `image` block of a job file",
            ),
        }
    }
    draft.account.field(part, "image, env");
}

/// The script of an entrypoint that starts jobc's own shell, as jobc writes it; another as it is.
fn script(text: &str) -> String {
    let words = super::super::words::split_plain(text).unwrap_or_default();
    let words: Vec<String> = words.iter().map(super::super::words::Word::text).collect();
    match command(&words) {
        Command::Script(shell, script) if shell == ["bash", "-euo", "pipefail", "-c"] => script,
        _ => text.to_owned(),
    }
}

/// Packages become a part of the image.
fn packages(value: &Node, part: Span, draft: &mut Draft<'_>) {
    let list = value.get("packages").unwrap_or(value);
    let names: Vec<Node> = list.items().iter().filter_map(scalar).map(|name| string(part, name)).collect();
    let Some(image) = draft.get(&["image"]).or_else(|| draft.get(&["roles", "head", "image"])).cloned()
    else {
        return;
    };
    if names.is_empty() {
        return draft.changed(
            part,
            "a file of packages is not read",
            "write `image: {from: …, python: {requirements: FILE}}`",
        );
    }
    let Json::String(from) = image.to_json() else { return };
    let roles: Vec<String> = draft
        .get(&["roles"])
        .map_or(&[][..], Node::entries)
        .iter()
        .filter(|role| role.value.get("image").and_then(Node::as_str) == Some(from.as_str()))
        .map(|role| role.key.clone())
        .collect();
    for role in roles {
        draft.remove(&["roles", &role, "image"]);
    }
    draft.remove(&["image"]);
    draft.set(&["image", "from"], image.span, string(image.span, from));
    draft.set(&["image", "python", "packages"], part, sequence(part, names));
}
