//! TrainJobs: the pods are those of the runtime, with what `trainer` says over them.

use crate::document::{Entry, Node, Value};
use crate::source::Span;

use super::super::draft::Draft;
use super::super::keyed::only;
use super::super::nodes::{entry, map, sequence, string};
use super::super::values::{text_at, text_in};
use super::objects::Objects;

/// Fields that change the pods of the runtime.
const CHANGES: [&str; 5] =
    ["initializer", "podSpecOverrides", "podTemplateOverrides", "runtimePatches", "trainer"];

/// The replicated job of a runtime that trains, and its container.
const NODE: &str = "node";

/// A TrainJob with the replicated jobs that it stands for, as a JobSet has them.
pub(super) fn expanded(object: &Node, objects: &Objects<'_>, draft: &mut Draft<'_>) -> Node {
    let spec = object.get("spec");
    let of_ref = |key: &str| text_in(object, &["spec", "runtimeRef", key]);
    let name = of_ref("name").unwrap_or_default();
    let kind = of_ref("kind").unwrap_or("ClusterTrainingRuntime".to_owned());
    let runtime = objects.get(&kind, &name, "roles");
    if let Some(reference) = spec.and_then(|spec| spec.get("runtimeRef")) {
        only(reference, &["apiGroup", "kind", "name"], "`runtimeRef`", draft);
    }
    let (changes, others): (Vec<&Entry>, Vec<&Entry>) =
        spec.map_or(&[][..], Node::entries).iter().partition(|entry| CHANGES.contains(&entry.key.as_str()));
    let mut entries: Vec<Entry> = others.into_iter().cloned().collect();
    let mut jobs: Vec<Node> = Vec::new();
    if let Some(runtime) = runtime {
        let base = ["spec", "template", "spec"].iter().try_fold(runtime, |node, key| node.get(key));
        for known in base.map_or(&[][..], Node::entries) {
            match known.key.as_str() {
                "replicatedJobs" => jobs = known.value.items().to_vec(),
                _ => entries.push(known.clone()),
            }
        }
        let policies = runtime.get("spec").map_or(&[][..], Node::entries).iter();
        entries.extend(policies.filter(|entry| entry.key != "template").cloned());
    } else {
        let at = spec.and_then(|spec| spec.get("runtimeRef")).map_or(object.span, |node| node.span);
        let container = map(at, vec![entry("name", at, string(at, NODE))]);
        let pod = map(at, vec![entry("containers", at, sequence(at, vec![container]))]);
        let inside = |node: Node, key: &str| map(at, vec![entry(key, at, node)]);
        let job = inside(inside(inside(pod, "spec"), "template"), "spec");
        jobs.push(map(at, vec![entry("name", at, string(at, NODE)), entry("template", at, job)]));
    }
    let mut metadata = object.get("metadata").cloned();
    for change in changes {
        match change.key.as_str() {
            "trainer" => overlay(&change.value, &mut jobs, &mut entries, draft),
            "initializer" => initializer(&change.value, &mut jobs, draft),
            "runtimePatches" => {
                for patch in change.value.items() {
                    patched(patch, &mut jobs, &mut metadata, draft);
                }
            }
            key => {
                for patch in change.value.items() {
                    overridden(patch, key == "podSpecOverrides", &mut jobs, draft);
                }
            }
        }
    }
    let at = spec.map_or(object.span, |spec| spec.span);
    entries.push(entry("replicatedJobs", at, sequence(at, jobs)));
    let others = object.entries().iter().filter(|entry| entry.key != "spec").map(|known| match &metadata {
        Some(metadata) if known.key == "metadata" => entry("metadata", known.key_span, metadata.clone()),
        _ => known.clone(),
    });
    map(object.span, others.chain([entry("spec", at, map(at, entries))]).collect())
}

/// Puts what fetches the model and the data into the environment of the roles that do so.
fn initializer(node: &Node, jobs: &mut [Node], draft: &mut Draft<'_>) {
    for known in node.entries() {
        let (part, value) = (known.key_span, &known.value);
        let name = format!("{}-initializer", known.key);
        let uri = text_at(value, "storageUri").unwrap_or_default();
        let job = jobs.iter_mut().find(|job| text_at(job, "name").as_deref() == Some(name.as_str()));
        let Some(container) = job.and_then(container) else {
            draft.changed(
                part,
                format!("nothing fetches `{uri}`: the file has no runtime with `{name}`"),
                format!("write `data: {{{0}: {{source: \"{uri}\", mount: /workspace/{0}}}}}`", known.key),
            );
            continue;
        };
        let mut variables = value.get("env").map_or(vec![], |env| env.items().to_vec());
        for field in value.entries() {
            let at = field.value.span;
            match field.key.as_str() {
                "storageUri" => {
                    let key = entry("name", at, string(at, "STORAGE_URI"));
                    variables.push(map(at, vec![key, entry("value", at, field.value.clone())]));
                    draft.account.field(field.key_span, format!("roles.{name}.env"));
                }
                "env" => {}
                "secretRef" => {
                    let from = map(at, vec![entry("secretRef", at, field.value.clone())]);
                    container.push(entry("envFrom", at, sequence(at, vec![from])));
                }
                key => draft.invalid(field.key_span, format!("unknown field `{key}` of `initializer`"), ""),
            }
        }
        let old = container.iter().position(|entry| entry.key == "env").map(|at| container.remove(at));
        let new = sequence(value.span, variables);
        let env = old.map_or(new.clone(), |old| joined(&old.value, &new));
        container.push(entry("env", part, env));
    }
}

/// An item of `runtimePatches`.
fn patched(patch: &Node, jobs: &mut [Node], metadata: &mut Option<Node>, draft: &mut Draft<'_>) {
    only(patch, &["manager", "time", "trainingRuntimeSpec"], "a patch", draft);
    for key in ["manager", "time"] {
        if let Some(known) = patch.get(key) {
            draft.note(known.span, "who changes the runtime makes no difference");
        }
    }
    let Some(template) = patch.get("trainingRuntimeSpec").and_then(|spec| spec.get("template")) else {
        return;
    };
    only(template, &["metadata", "spec"], "a patch of the template", draft);
    if let (Some(old), Some(new)) = (metadata.as_ref(), template.get("metadata")) {
        *metadata = Some(merged(old, new));
    }
    let groups = template.get("spec").and_then(|spec| spec.get("replicatedJobs"));
    for group in groups.map_or(&[][..], Node::items) {
        only(group, &["name", "template"], "a patch of `replicatedJobs`", draft);
        let name = group.get("name").map_or(group.span, |name| name.span);
        draft.note(name, TARGET);
        match (of_name(jobs, text_at(group, "name"), name, draft), group.get("template")) {
            (Some(fields), Some(new)) => change(fields, "template", new),
            (None, _) => draft.note(group.span, LEFT_OUT),
            (Some(_), None) => {}
        }
    }
}

/// An item of `podTemplateOverrides` or `podSpecOverrides`.
fn overridden(patch: &Node, is_spec: bool, jobs: &mut [Node], draft: &mut Draft<'_>) {
    let targets = patch.get("targetJobs").map_or(&[][..], Node::items);
    let fields = patch.entries().iter().filter(|entry| entry.key != "targetJobs").cloned();
    let fields = map(patch.span, fields.collect());
    let new = if is_spec { map(patch.span, vec![entry("spec", patch.span, fields)]) } else { fields };
    for target in targets {
        draft.note(target.span, TARGET);
        let Some(job) = of_name(jobs, text_at(target, "name"), target.span, draft) else {
            draft.note(patch.span, LEFT_OUT);
            continue;
        };
        let template = job.iter_mut().find(|entry| entry.key == "template");
        if let Some(spec) = template.and_then(|template| below(&mut template.value, &["spec"])) {
            change(spec, "template", &new);
        }
    }
}

/// Why the name of a group that is changed needs no field.
const TARGET: &str = "the pods that are changed";

/// What a change of pods that are not in the file becomes.
const LEFT_OUT: &str = "the pods that it changes are not in the file";

/// The fields of a replicated job.
fn of_name<'j>(
    jobs: &'j mut [Node],
    name: Option<String>,
    at: Span,
    draft: &mut Draft<'_>,
) -> Option<&'j mut Vec<Entry>> {
    let name = name.unwrap_or_default();
    let job = jobs.iter_mut().find(|job| text_at(job, "name").as_deref() == Some(name.as_str()));
    if job.is_none() {
        let instead = "add the runtime to the file: `kubectl get clustertrainingruntime NAME -o yaml`";
        draft.changed(
            at,
            format!("the pods of `{name}` are not in the file: their changes are left out"),
            instead,
        );
    }
    below(job?, &[])
}

/// Merges a value into that of a field.
fn change(fields: &mut Vec<Entry>, key: &str, new: &Node) {
    match fields.iter_mut().find(|entry| entry.key == key) {
        Some(known) => known.value = merged(&known.value, new),
        None => fields.push(entry(key, new.span, new.clone())),
    }
}

/// Two values as one: maps by key, items of lists by their names and paths.
fn merged(old: &Node, new: &Node) -> Node {
    let value = match (&old.value, &new.value) {
        (Value::Mapping(known), Value::Mapping(more)) => {
            let mut all = known.clone();
            for entry in more {
                match all.iter_mut().find(|known| known.key == entry.key) {
                    Some(known) => {
                        *known = Entry { value: merged(&known.value, &entry.value), ..entry.clone() };
                    }
                    None => all.push(entry.clone()),
                }
            }
            Value::Mapping(all)
        }
        (Value::Sequence(known), Value::Sequence(more)) => {
            let mut all = known.clone();
            for item in more {
                let same = |other: &&mut Node| {
                    text_at(item, "name").is_some()
                        && ["name", "mountPath"].iter().all(|key| text_at(other, key) == text_at(item, key))
                };
                match all.iter_mut().find(same) {
                    Some(known) => *known = merged(known, item),
                    None => all.push(item.clone()),
                }
            }
            Value::Sequence(all)
        }
        (_, new) => new.clone(),
    };
    Node { span: new.span, value }
}

/// Puts `trainer` over the container that trains.
fn overlay(trainer: &Node, jobs: &mut [Node], spec: &mut Vec<Entry>, draft: &mut Draft<'_>) {
    let is_node = |job: &Node| {
        let label = "trainer.kubeflow.org/trainjob-ancestor-step";
        text_at(job, "name").as_deref() == Some(NODE)
            || text_in(job, &["template", "metadata", "labels", label]).as_deref() == Some("trainer")
    };
    let at = jobs.iter().position(is_node).unwrap_or(0);
    let Some(job) = jobs.get_mut(at) else { return };
    for known in trainer.entries() {
        match known.key.as_str() {
            "numNodes" => {
                if let Some(of_job) = below(job, &["template", "spec"]) {
                    of_job.retain(|entry| !["completions", "parallelism"].contains(&entry.key.as_str()));
                    of_job.push(Entry { key: "completions".to_owned(), ..known.clone() });
                }
                if let Some(policy) = spec.iter_mut().find(|entry| entry.key == "mlPolicy")
                    && let Value::Mapping(fields) = &mut policy.value.value
                {
                    fields.retain(|entry| entry.key != "numNodes");
                }
            }
            "numProcPerNode" => spec.push(known.clone()),
            "image" | "command" | "args" | "env" | "resourcesPerNode" => {
                let key = if known.key == "resourcesPerNode" { "resources" } else { &known.key };
                let Some(container) = container(job) else { continue };
                let place = container.iter().position(|entry| entry.key == key);
                let mut new = Entry { key: key.to_owned(), ..known.clone() };
                if let Some(place) = place {
                    let old = container.remove(place);
                    if key == "env" {
                        new.value = joined(&old.value, &new.value);
                    }
                }
                container.push(new);
            }
            key => draft.invalid(known.key_span, format!("unknown field `{key}` of `trainer`"), ""),
        }
    }
}

/// Variables of two lists; later ones replace earlier ones.
fn joined(old: &Node, new: &Node) -> Node {
    let names: Vec<Option<String>> = new.items().iter().map(|item| text_at(item, "name")).collect();
    let kept = old.items().iter().filter(|item| !names.contains(&text_at(item, "name"))).cloned();
    let items = kept.chain(new.items().iter().cloned()).collect();
    sequence(new.span, items)
}

/// The fields of the container that trains.
fn container(job: &mut Node) -> Option<&mut Vec<Entry>> {
    let pod = below(job, &["template", "spec", "template", "spec"])?;
    let all = pod.iter_mut().find(|entry| entry.key == "containers")?;
    let Value::Sequence(items) = &mut all.value.value else { return None };
    let at = items.iter().position(|item| text_at(item, "name").as_deref() == Some(NODE)).unwrap_or(0);
    match &mut items.get_mut(at)?.value {
        Value::Mapping(fields) => Some(fields),
        _ => None,
    }
}

fn below<'n>(node: &'n mut Node, path: &[&str]) -> Option<&'n mut Vec<Entry>> {
    let Value::Mapping(entries) = &mut node.value else { return None };
    match path {
        [] => Some(entries),
        [first, rest @ ..] => {
            let next = entries.iter_mut().find(|entry| entry.key == *first)?;
            below(&mut next.value, rest)
        }
    }
}
