//! `distributed` of a job: by the framework that a kind stands for, or by the variables that its pods set.

use serde_json::{Map, Value as Json, json};

use crate::document::{Node, Value};
use crate::source::Span;

use super::super::draft::Draft;
use super::super::nodes::json as node;
use super::super::values::{scalar, text_at};
use super::facts::{Fact, Facts};
use super::group::Group;
use super::kinds::{Kind, Stands};

/// Whether a list of variables has the rendezvous of torchrun.
pub(super) fn has_rendezvous(env: &Node) -> bool {
    let has = |name: &str| env.items().iter().any(|item| text_at(item, "name").as_deref() == Some(name));
    has("PET_NNODES") && has("PET_NODE_RANK") && has("PET_MASTER_ADDR")
}

/// Writes `distributed`.
pub(super) fn write(kind: &Kind, groups: &[Group], facts: &mut Facts, at: Span, draft: &mut Draft<'_>) {
    let processes = facts.take(Fact::Processes);
    let elastic = elastic(facts, draft);
    // What fetches the data of a TrainJob takes no part.
    let is_node = |group: &&Group| group.source == "node";
    let trains = kind.name == "TrainJob" && groups.iter().any(|group| is_node(&group));
    let names: Vec<&str> =
        groups.iter().filter(|group| !trains || is_node(group)).map(|group| group.role.as_str()).collect();
    let mut block = Map::new();
    match kind.framework {
        Stands::Pytorch
            if is_of_torch(kind, facts) && !is_alone(groups, elastic.is_some(), processes.as_ref()) =>
        {
            let many = processes
                .as_ref()
                .and_then(|(value, _)| super::facts::number_of(value))
                .is_some_and(|count| count > 1);
            let is_launched = starts_torchrun(groups) || elastic.is_some() || many;
            let framework = if is_launched { "torchrun" } else { "ddp" };
            block.insert("framework".to_owned(), json!(framework));
            block.insert("roles".to_owned(), json!(names));
        }
        Stands::Parts(framework) if groups.len() > 1 => {
            let part = |group: &Group| {
                let known = kind.parts.iter().find(|(source, ..)| *source == group.source);
                (group.role.clone(), json!(known.map_or("worker", |(.., part)| part)))
            };
            block.insert("framework".to_owned(), json!(framework));
            block.insert("roles".to_owned(), Json::Object(groups.iter().map(part).collect()));
        }
        Stands::Parts(framework) if groups.iter().any(|group| group.instances > 1) => {
            block.insert("framework".to_owned(), json!(framework));
            block.insert("roles".to_owned(), json!(names));
        }
        Stands::Ordered(framework) if !groups.is_empty() => {
            block.insert("framework".to_owned(), json!(framework));
            block.insert("roles".to_owned(), json!(names));
        }
        _ => {
            let own: Vec<&str> = groups
                .iter()
                .filter(|group| sets_rendezvous(group))
                .map(|group| group.role.as_str())
                .collect();
            let parts = tensorflow(groups);
            if !parts.is_empty() {
                block.insert("framework".to_owned(), json!("tensorflow"));
                block.insert("roles".to_owned(), Json::Object(parts));
            } else if !own.is_empty() {
                block.insert("framework".to_owned(), json!("torchrun"));
                block.insert("roles".to_owned(), json!(own));
            }
        }
    }
    if let Some((_, part)) =
        facts.take(Fact::LauncherWorks).filter(|(flag, _)| flag.value == Value::Bool(true))
    {
        draft.changed(
            part,
            "the launcher is a role of its own, and starts no processes",
            "write one role, with `distributed: {framework: mpi, roles: [worker], launch: first}`",
        );
    }
    if let Some((value, part)) = processes {
        // That of each instance's GPUs is the default.
        let text = scalar(&value).unwrap_or_default();
        let gpus = groups.iter().map(|group| gpus_of(group, draft)).max().unwrap_or(0).max(1);
        match text.parse::<u64>() {
            Ok(count) if count == gpus || block.is_empty() && count == 1 => draft.note(part, "the default"),
            Ok(count) if !block.is_empty() => {
                block.insert("processes_per_instance".to_owned(), json!(count));
                draft.account.field(part, "distributed.processes_per_instance");
            }
            Err(_) if ["auto", "gpu", "cpu"].contains(&text.as_str()) => {
                draft.note(part, "the default: one for each GPU");
            }
            _ => draft.note(part, "the command starts its processes itself"),
        }
    }
    if block.is_empty() {
        return;
    }
    if let Some(elastic) = elastic {
        block.insert("elastic".to_owned(), elastic);
    }
    draft.set(&["distributed"], at, node(at, &Json::Object(block)));
}

/// Whether a TrainJob's runtime is one of PyTorch; the other kinds are.
fn is_of_torch(kind: &Kind, facts: &Facts) -> bool {
    kind.name != "TrainJob" || facts.field(Fact::Runtime, "name").is_some_and(|name| name.contains("torch"))
}

/// Whether a job of PyTorch has one process alone, which needs no rendezvous.
fn is_alone(groups: &[Group], is_elastic: bool, processes: Option<&(Node, Span)>) -> bool {
    let instances: u64 = groups.iter().map(|group| group.instances).sum();
    instances < 2 && !is_elastic && processes.is_none() && !starts_torchrun(groups)
}

/// Whether a command starts `torchrun` or what does the same.
fn starts_torchrun(groups: &[Group]) -> bool {
    let words = ["torchrun", "torch.distributed.run", "torch.distributed.launch", "PET_"];
    groups.iter().any(|group| {
        let containers = group.spec().and_then(|spec| spec.get("containers"));
        let keys = ["command", "args"];
        containers.map_or(&[][..], Node::items).iter().any(|container| {
            keys.iter().filter_map(|key| container.get(key)).any(|list| {
                list.items()
                    .iter()
                    .chain(std::iter::once(list))
                    .filter_map(Node::as_str)
                    .any(|text| words.iter().any(|word| text.contains(word)))
            })
        })
    })
}

/// The variables of a group.
fn variables(group: &Group) -> Option<&Node> {
    let containers = group.spec()?.get("containers")?;
    containers.items().first()?.get("env")
}

fn sets_rendezvous(group: &Group) -> bool {
    variables(group).is_some_and(has_rendezvous)
}

/// The roles that set `TF_CONFIG`, with their parts by their names.
fn tensorflow(groups: &[Group]) -> Map<String, Json> {
    let sets = |group: &&Group| variables(group).is_some_and(sets_tensorflow);
    let part = |group: &Group| {
        let part = ["ps", "chief", "evaluator"].into_iter().find(|part| group.role.starts_with(part));
        (group.role.clone(), json!(part.unwrap_or("worker")))
    };
    groups.iter().filter(sets).map(part).collect()
}

/// Whether a list of variables has the cluster of TensorFlow.
pub(super) fn sets_tensorflow(env: &Node) -> bool {
    env.items().iter().any(|item| text_at(item, "name").as_deref() == Some("TF_CONFIG"))
}

fn gpus_of(group: &Group, draft: &Draft<'_>) -> u64 {
    let gpu = draft.get(&["roles", &group.role, "resources", "gpu"]);
    gpu.and_then(|gpu| super::facts::number_of(gpu.get("count").unwrap_or(gpu))).unwrap_or(0)
}

/// `elasticPolicy` of a PyTorchJob.
fn elastic(facts: &mut Facts, draft: &mut Draft<'_>) -> Option<Json> {
    let min = facts.take_number(Fact::ElasticMin, draft);
    let max = facts.take_number(Fact::ElasticMax, draft);
    let restarts = facts.take_number(Fact::ElasticRestarts, draft);
    let backend = facts.take(Fact::ElasticBackend);
    let (mut host, mut port) = (facts.take(Fact::ElasticHost), facts.take(Fact::ElasticPort));
    let any = min.or(max).map(|(_, part)| part).or(backend.as_ref().map(|(_, part)| *part))?;
    let mut block = json!({});
    let largest = max.or(min).map_or(1, |(count, _)| count);
    for (key, value) in
        [("min", Some(min.unwrap_or((1, any)))), ("max", Some((largest, any))), ("max_restarts", restarts)]
    {
        if let Some((count, _)) = value {
            block[key] = json!(count);
        }
    }
    for (_, part) in [min, max, restarts].into_iter().flatten() {
        draft.account.field(part, "distributed.elastic");
    }
    if let Some((value, part)) = backend {
        let is_etcd = scalar(&value).is_some_and(|name| name.starts_with("etcd"));
        if let Some((host, at)) = host.take_if(|_| is_etcd) {
            let number = port.take().and_then(|(port, at)| {
                draft.account.field(at, "distributed.elastic.endpoint");
                scalar(&port)
            });
            let number = number.unwrap_or("2379".to_owned());
            block["endpoint"] = json!(format!("{}:{number}", scalar(&host).unwrap_or_default()));
            draft.account.field(at, "distributed.elastic.endpoint");
        }
        match scalar(&value).as_deref() {
            Some("c10d") => draft.note(part, "the default"),
            Some("etcd" | "etcd-v2") => {
                block["backend"] = json!(scalar(&value));
                draft.account.field(part, "distributed.elastic.backend");
            }
            other => draft.invalid(part, format!("unknown backend `{}`", other.unwrap_or_default()), ""),
        }
    }
    for (_, part) in host.into_iter().chain(port) {
        draft.note(part, "jobc sets the address of the rendezvous");
    }
    Some(block)
}
