//! What a RayJob says of its command and of the environment of its tasks.

use jobc_schema::shell;
use serde_json::Value as Json;

use crate::diagnostic::Sink;
use crate::document::Node;
use crate::parse::parse;
use crate::source::{Source, Sources, Span};

use super::super::command::{Command, command};
use super::super::container::Role;
use super::super::container::variable;
use super::super::draft::Draft;
use super::super::keyed::only;
use super::super::nodes::{sequence, string};
use super::super::values::{scalar, texts};
use super::container::CONTAINER;
use super::facts::{Fact, Facts};
use super::group::Group;
use super::pod::POD_SPEC;
use super::rows::Row;

/// Writes the command of the head and the environment of all roles.
pub(super) fn write(groups: &[Group], facts: &mut Facts, draft: &mut Draft<'_>) {
    let Some(head) = groups.first() else { return };
    let submitter = facts.take(Fact::Submitter);
    let own = submitter.as_ref().and_then(|(pod, _)| submitted(pod));
    if let Some((pod, _)) = &submitter {
        of_submitter(pod, draft);
    }
    let entrypoint = facts.take(Fact::Entrypoint);
    let is_own = entrypoint.is_none();
    let command = entrypoint.map(|(value, part)| (scalar(&value).unwrap_or_default(), part));
    let part_of_own = submitter.as_ref().map_or(head.at, |(_, part)| *part);
    let Some((text, part)) = command.or(own.as_ref().map(|(text, _)| (text.clone(), part_of_own))) else {
        return draft.refuse(
            head.at,
            "the RayJob has no `entrypoint`: its command is submitted by hand",
            "write the command as `entrypoint`",
        );
    };
    // The program of the container is Ray itself.
    for key in ["args", "run", "shell"] {
        draft.remove(&["roles", &head.role, key]);
    }
    draft.field(&["roles", &head.role, "run"], part, string(part, script(text.trim_end())));
    if let Some((_, part)) = submitter.filter(|_| !is_own) {
        draft.note(part, "jobc runs the command on the head");
    }
    let environment =
        facts.take(Fact::Packages).map(|(value, part)| (scalar(&value).unwrap_or_default(), part));
    let of_own = own.and_then(|(_, environment)| environment).filter(|_| is_own);
    let Some((text, part)) = environment.or(of_own.map(|text| (text, part_of_own))) else { return };
    let mut sources = Sources::new();
    let id = sources.add(Source::new("runtimeEnvYAML.yaml", text));
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
            "config" | "eager_install" | "excludes" => {}
            key => draft.changed(
                part,
                format!("`{key}` of Ray's runtime environment is not made"),
                "write it in an `image` block of a job file",
            ),
        }
    }
    draft.account.field(part, "image, env");
}

/// Reports unknown fields of the pod of a submitter.
fn of_submitter(pod: &Node, draft: &mut Draft<'_>) {
    let names = |rows: &[Row]| -> Vec<&'static str> {
        rows.iter().filter_map(|row| row.path.split('.').next()).collect()
    };
    only(pod, &["metadata", "spec"], "a pod template", draft);
    let Some(spec) = pod.get("spec") else { return };
    only(spec, &names(POD_SPEC), "a Pod", draft);
    for container in spec.get("containers").map_or(&[][..], Node::items) {
        only(container, &names(CONTAINER), "a container", draft);
    }
}

/// The command that the pod of a submitter hands to Ray, with the environment that it asks for.
fn submitted(pod: &Node) -> Option<(String, Option<String>)> {
    let container = pod.get("spec")?.get("containers")?.items().first()?;
    let words = ["command", "args"].into_iter().filter_map(|key| container.get(key)).flat_map(texts);
    let words: Vec<String> = words.map(|(word, _)| word).collect();
    let (options, command) = words.split_at(words.iter().position(|word| word == "--")?);
    let is_submitter = options.first()?.ends_with("submitter") || options.iter().any(|word| word == "submit");
    let environment = options.iter().position(|word| word == "--runtime-env-json");
    let environment = environment.and_then(|at| options.get(at + 1)).cloned();
    let command = shell::join(command[1..].iter().map(String::as_str));
    is_submitter.then_some((command, environment))
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
