//! TrainJobs: the pods are those of the runtime, with what `trainer` says over them.

use crate::document::{Entry, Node, Value};

use super::super::draft::Draft;
use super::super::nodes::{entry, map, sequence, string};
use super::super::values::{text_at, text_in};
use super::objects::Objects;

/// The replicated job of a runtime that trains, and its container.
const NODE: &str = "node";

/// A TrainJob with the replicated jobs that it stands for, as a JobSet has them.
pub(super) fn expanded(object: &Node, objects: &Objects<'_>, draft: &mut Draft<'_>) -> Node {
    let spec = object.get("spec");
    let of_ref = |key: &str| text_in(object, &["spec", "runtimeRef", key]);
    let name = of_ref("name").unwrap_or_default();
    let kind = of_ref("kind").unwrap_or("ClusterTrainingRuntime".to_owned());
    let runtime = objects.get(&kind, &name, "roles");
    let trainer = spec.and_then(|spec| spec.get("trainer"));
    let mut entries: Vec<Entry> =
        spec.map_or(&[][..], Node::entries).iter().filter(|entry| entry.key != "trainer").cloned().collect();
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
    if let Some(trainer) = trainer {
        overlay(trainer, &mut jobs, &mut entries, draft);
    }
    let at = spec.map_or(object.span, |spec| spec.span);
    entries.push(entry("replicatedJobs", at, sequence(at, jobs)));
    let others = object.entries().iter().filter(|entry| entry.key != "spec").cloned();
    map(object.span, others.chain([entry("spec", at, map(at, entries))]).collect())
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
