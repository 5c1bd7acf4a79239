//! Containers that run before the program: `setup`, where they are like it, else roles that the program's role needs.
//!
//! A role hands its files over in a directory of the job: the volumes that it shares with the program.

use jobc_schema::shell;

use crate::document::{Node, Value};

use super::super::command::{Command, command};
use super::super::draft::Draft;
use super::super::nodes::string;
use super::super::values::{text_at, texts};
use super::containers::{Handed, is_sidecar, items, mounted, program, with};
use super::context::role_name;
use super::facts::Facts;
use super::group::Group;
use super::kinds::{Kind, Stands};
use super::layout::free_name;
use super::reader::Pod;

/// A container that becomes a role.
pub(super) struct Earlier {
    /// Its only pod.
    pub(super) group: Group,
    /// The role that needs it.
    pub(super) before: String,
}

/// Whether a container of a group becomes a role.
pub(super) fn has_role(kind: &Kind, group: &Group) -> bool {
    group.spec().is_some_and(|spec| roles(kind, spec) > 0)
}

/// How many of the containers become roles: all up to the last one that is not like the program.
fn roles(kind: &Kind, spec: &Node) -> usize {
    let main = program(spec);
    let is_role =
        |item: &Node| !is_of_jobc(item) && !waits(kind, item) && !is_sidecar(item) && !is_setup(main, item);
    items(spec, "initContainers").iter().rposition(is_role).map_or(0, |last| last + 1)
}

fn is_of_jobc(item: &Node) -> bool {
    text_at(item, "name").is_some_and(|name| name.starts_with("jobc-"))
}

/// Whether it waits for the head of Ray, as jobc does.
fn waits(kind: &Kind, item: &Node) -> bool {
    let words = ["command", "args"].into_iter().filter_map(|key| item.get(key)).flat_map(texts);
    kind.framework == Stands::Ordered("ray")
        && words.into_iter().any(|(word, _)| word.contains("RAY_IP") || word.contains("ray health-check"))
}

/// Whether a container can run in that of the program.
fn is_setup(main: Option<&Node>, item: &Node) -> bool {
    text_at(item, "image") == main.and_then(|main| text_at(main, "image"))
        && item.entries().iter().all(|entry| match entry.key.as_str() {
            "volumeMounts" => mounts_are_of_main(main, &entry.value),
            key => {
                ["name", "command", "args"].contains(&key) || IGNORED.contains(&key) || same(main, item, key)
            }
        })
}

/// Fields that make no difference before the program.
const IGNORED: [&str; 5] =
    ["image", "imagePullPolicy", "terminationMessagePath", "terminationMessagePolicy", "resources"];

/// Takes the containers that become roles out of the pods, in their order, and adds the volumes that they hand over.
pub(super) fn take(
    kind: &'static Kind,
    groups: &mut [Group],
    others: &[Group],
    handed: &mut Handed,
    draft: &mut Draft<'_>,
) -> Vec<Earlier> {
    let mut all: Vec<Earlier> = Vec::new();
    let mut taken: Vec<Group> = groups.iter().chain(others).cloned().collect();
    for group in groups.iter_mut() {
        let Some(spec) = group.spec().cloned() else { continue };
        let count = roles(kind, &spec);
        if count == 0 {
            continue;
        }
        let (first, rest) = items(&spec, "initContainers").split_at(count);
        let (own, others): (Vec<&Node>, Vec<&Node>) =
            first.iter().partition(|item| !is_of_jobc(item) && !waits(kind, item));
        let left: Vec<Node> = others.into_iter().chain(rest).cloned().collect();
        let later: Vec<&Node> = left.iter().chain(items(&spec, "containers")).collect();
        for (at, item) in own.iter().enumerate() {
            let others = own.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, item)| *item);
            let others: Vec<String> = others.chain(later.iter().copied()).flat_map(mounted).collect();
            let shared = mounted(item).into_iter().filter(|name| others.contains(name));
            handed.extend(shared.map(|name| (group.pods.clone(), name)));
            let source = text_at(item, "name").unwrap_or("setup".to_owned());
            let wanted = role_name(kind, &source).unwrap_or("setup".to_owned());
            let numbered = (2..).map(|number| format!("{wanted}-{number}"));
            let mut role = std::iter::once(wanted.clone()).chain(numbered);
            let role = role.find_map(|name| free_name(&name, &taken)).unwrap_or(wanted);
            let title = item.get("name").map_or(item.span, |name| name.span);
            draft.changed(
                title,
                format!("`{source}` runs once before `{}`, as a role, not in each of its pods", group.role),
                "what it writes for the other role is in a directory of the job: `source: \"job:\"`",
            );
            let volumes = mounted(item);
            let template = with(&group.template, &spec, &[], std::slice::from_ref(*item), &|name| {
                volumes.contains(name)
            });
            let (pods, facts) = (group.pods.clone(), Facts::default());
            let new = Group { at: title, source, role, pods, template, facts, instances: 1 };
            taken.push(new.clone());
            // Each waits for the one before it, and the program for the last.
            if let Some(last) = all.last_mut().filter(|last| last.before == group.role) {
                last.before.clone_from(&new.role);
            }
            all.push(Earlier { group: new, before: group.role.clone() });
        }
        let by_own: Vec<String> = own.iter().flat_map(|item| mounted(item)).collect();
        let by_later: Vec<String> = later.iter().flat_map(|item| mounted(item)).collect();
        let is_used = |name: &String| by_later.contains(name) || !by_own.contains(name);
        group.template = with(&group.template, &spec, &left, items(&spec, "containers"), &is_used);
    }
    all
}

/// Reads the `initContainers` that are not roles.
pub(super) fn read(pod: &mut Pod<'_, '_, '_>, node: &Node) {
    let mut script: Vec<String> = Vec::new();
    for item in node.items() {
        if is_of_jobc(item) {
            pod.role.draft.note(item.span, "jobc writes it");
            continue;
        }
        if waits(pod.context.kind, item) {
            pod.role.draft.note(item.span, "jobc starts the workers of Ray when the head answers");
            continue;
        }
        for entry in item.entries() {
            let part = entry.key_span;
            match entry.key.as_str() {
                "name" | "image" | "command" | "args" => {
                    pod.role.draft.account.field(part, format!("roles.{}.setup", pod.role.name));
                }
                "volumeMounts" => pod.role.draft.note(part, "`setup` has the mounts of the program"),
                key if IGNORED.contains(&key) => {
                    pod.role.draft.note(part, "`setup` runs with the resources of the program");
                }
                _ => pod.role.draft.note(part, "that of the program"),
            }
        }
        let words = ["command", "args"].into_iter().filter_map(|key| item.get(key)).flat_map(texts);
        let words: Vec<String> = words.map(|(word, _)| word).collect();
        match command(&words) {
            Command::Script(_, text) => script.push(text.trim_end().to_owned()),
            Command::Words => script.push(shell::join(words.iter().map(String::as_str))),
        }
    }
    if !script.is_empty() {
        let text = script.join("\n") + "\n";
        let known = pod.role.get(&["setup"]).and_then(Node::as_str).unwrap_or_default().to_owned();
        let text = pod.context.text(&text, super::context::Use::Script) + &known;
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
