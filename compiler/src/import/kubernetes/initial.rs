//! Containers that run before the program: `setup`, where they have its image.

use jobc_schema::shell;

use crate::document::{Node, Value};

use super::super::nodes::string;
use super::super::values::{text_at, texts};
use super::container::{self, Command};
use super::reader::Pod;

/// Why a part of a container that is refused has no row of its own.
pub(super) const REPORTED: &str = "the name of the container is reported";

/// Reads `initContainers`.
pub(super) fn read(pod: &mut Pod<'_, '_, '_>, node: &Node) {
    let main = pod.spec.get("containers").and_then(|all| all.items().first());
    let image = main.and_then(|main| text_at(main, "image"));
    let mut script: Vec<String> = Vec::new();
    for item in node.items() {
        let name = item.get("name").map_or(item.span, |name| name.span);
        let title = text_at(item, "name").unwrap_or_default();
        if title.starts_with("jobc-") {
            pod.role.draft.note(item.span, "jobc writes it");
            continue;
        }
        let refusal = if text_at(item, "restartPolicy").as_deref() == Some("Always") {
            Some(("runs beside the program", "write a role for it; roles reach each other by name"))
        } else if text_at(item, "image") != image {
            Some((
                "has another image than the program",
                "write a role with this image, and `needs` in the other; `source: \"job:\"` of `data` hands files over",
            ))
        } else {
            None
        };
        if let Some((why, instead)) = refusal {
            pod.role.draft.refuse(name, format!("the container `{title}` {why}"), instead);
            pod.role.draft.note(item.span, REPORTED);
            continue;
        }
        for entry in item.entries() {
            let part = entry.key_span;
            match entry.key.as_str() {
                "name" | "image" | "command" | "args" => {
                    pod.role.draft.account.field(part, format!("roles.{}.setup", pod.role.name));
                }
                _ if same(main, item, &entry.key) => pod.role.draft.note(part, "that of the program"),
                "imagePullPolicy" | "terminationMessagePath" | "terminationMessagePolicy" | "resources" => {
                    pod.role.draft.note(part, "`setup` runs with the resources of the program");
                }
                "volumeMounts" if mounts_are_of_main(main, &entry.value) => {
                    pod.role.draft.note(part, "`setup` has the mounts of the program");
                }
                _ => pod.role.draft.refuse(
                    part,
                    format!("`{}` of a container that runs before the program", entry.key),
                    "write it in the program's container too: `setup` runs in the same one",
                ),
            }
        }
        let words = ["command", "args"].into_iter().filter_map(|key| item.get(key)).flat_map(texts);
        let words: Vec<String> = words.map(|(word, _)| word).collect();
        match container::command(&words) {
            Command::Script(_, text) => script.push(text.trim_end().to_owned()),
            Command::Words => script.push(shell::join(words.iter().map(String::as_str))),
        }
    }
    if !script.is_empty() {
        let text = script.join("\n") + "\n";
        let text = pod.context.text(&text, super::context::Use::Script);
        let path = ["roles", pod.role.name, "setup"];
        pod.role.draft.set(&path, node.span, string(node.span, text));
    }
}

/// Whether a field is that of the program.
fn same(main: Option<&Node>, item: &Node, key: &str) -> bool {
    let of = |node: &Node| node.get(key).map(Node::to_json);
    main.is_some_and(|main| of(main) == of(item))
}

/// Whether the program has these mounts too.
fn mounts_are_of_main(main: Option<&Node>, mounts: &Node) -> bool {
    let mounts_of_main = main.and_then(|main| main.get("volumeMounts"));
    let place = |mount: &Node| (text_at(mount, "name"), text_at(mount, "mountPath"));
    let known: Vec<_> = mounts_of_main.map_or(&[][..], Node::items).iter().map(place).collect();
    matches!(mounts.value, Value::Sequence(_))
        && mounts.items().iter().all(|mount| known.contains(&place(mount)))
}
