//! Between expand and resolve: fewer instances, or no GPUs, as the command line asks for a run on a small host.
//!
//! The file defines the job; this changes how much of it runs. It changes the documents when they already contain the
//! numbers, but not yet what follows from them: expressions, ranks and addresses are those of the smaller job.
//! Thresholds that the smaller job could not reach become the largest it can.

mod gpus;

use indexmap::IndexMap;
use jobc_schema::{Pointer, Scalar};

use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::document::{Node, Value};
use crate::expand::Variant;
use crate::suggest;

pub use gpus::count_all;

/// What the command line changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Adjustments {
    /// `--scale ROLE=N`, in order; for the same role, the last one counts.
    pub scale: Vec<(String, u32)>,
    /// `--no-gpu`: roles that request GPUs get none.
    pub no_gpu: bool,
    /// `--resume`: the combinations of the job's matrix that an earlier run knows, with their numbers.
    pub numbers: Vec<(IndexMap<String, Scalar>, u32)>,
}

/// Changes the documents; returns the number in the file for each role that now has fewer instances.
///
/// A number that does not fit is a finding, reported for the first document only.
pub fn adjust(variants: &mut [Variant], adjustments: &Adjustments, sink: &mut Sink) -> IndexMap<String, u32> {
    let mut scaled = IndexMap::new();
    for variant in variants {
        let errors = sink.error_count();
        let root = &mut variant.document.root;
        let before = total(root);
        for (role, instances) in &adjustments.scale {
            let groups = variant.groups.of_role(role).unwrap_or(std::slice::from_ref(role));
            let written = |group: &String| instances_of(root.get("roles")?.get(group)?);
            let counts: Vec<Option<u32>> = groups.iter().map(written).collect();
            let most = counts.iter().flatten().max().copied();
            for (group, count) in groups.iter().zip(counts) {
                // A combination may have fewer instances than another.
                if count < Some(*instances) && (Some(*instances) <= most || count < most) {
                    continue;
                }
                if let Some(written) = scale(root, group, role, *instances, sink) {
                    scaled.entry(role.clone()).or_insert(written);
                }
            }
        }
        if !adjustments.scale.is_empty() {
            shrink_gang(root, before);
        }
        if adjustments.no_gpu {
            remove_gpus(root);
        }
        if sink.error_count() > errors {
            break;
        }
    }
    scaled
}

/// Gives a role fewer instances; returns the old number if it differs. `word` is the role as named on the command line.
fn scale(root: &mut Node, role: &str, word: &str, instances: u32, sink: &mut Sink) -> Option<u32> {
    let roles = Pointer::ROOT.key("roles");
    let names: Vec<&str> = root.get("roles")?.entries().iter().map(|entry| entry.key.as_str()).collect();
    if !names.contains(&role) {
        let mut diagnostic =
            Diagnostic::error(codes::SCALE, format!("unknown role `{role}` in `--scale`")).at_key(&roles, "");
        if let Some(near) = suggest::nearest(role, names.iter().copied()) {
            diagnostic = diagnostic.note(format!("did you mean `{near}`?"));
        }
        sink.push(diagnostic.note(format!("the roles are {}", suggest::list(names))));
        return None;
    }
    let written = instances_of(root.get("roles")?.get(role)?)?;
    let at = roles.key(role).key("instances");
    if instances == 0 || instances > written {
        let (message, note) = if instances == 0 {
            let message = format!("`--scale {word}=0` leaves no instance of `{word}`");
            (message, "a role has at least one instance; to run without the role, remove it from the file")
        } else {
            let message = format!("`--scale {word}={instances}` is more than the {written} of the file");
            (message, "`--scale` only makes a job smaller; for a larger job increase `instances` in the file")
        };
        sink.push(Diagnostic::error(codes::SCALE, message).at(&at, "").note(note));
        return None;
    }
    if instances == written {
        return None;
    }
    let own = child(child(root, "roles")?, role)?;
    put(child(own, "instances")?, instances);
    if let Some(completion) = child(own, "completion") {
        for key in ["min_succeeded", "min_failed"] {
            cap(completion, key, instances);
        }
    }
    if let Some(distributed) = child(root, "distributed") {
        let member = distributed.get("roles").is_some_and(|roles| {
            roles.get(role).is_some() || roles.items().iter().any(|item| item.as_str() == Some(role))
        });
        if let Some(elastic) = child(distributed, "elastic").filter(|_| member) {
            cap(elastic, "min", instances);
        }
    }
    for entry in entries(child(root, "roles")?) {
        if let Some(need) = child(&mut entry.value, "needs").and_then(|needs| child(needs, word)) {
            cap(need, "min", instances);
        }
    }
    Some(written)
}

/// A gang that fit into the job must also fit into the smaller one.
fn shrink_gang(root: &mut Node, before: u64) {
    let after = total(root);
    if let Some(gang) = child(root, "gang")
        && gang.get("min").and_then(number).is_some_and(|min| min <= before)
    {
        cap(gang, "min", u32::try_from(after).unwrap_or(u32::MAX));
    }
}

fn remove_gpus(root: &mut Node) {
    let Some(roles) = child(root, "roles") else { return };
    for role in entries(roles) {
        // `gpu: 0` hides all cards; a role without `gpu` stays without it.
        if let Some(gpu) = child(&mut role.value, "resources").and_then(|resources| child(resources, "gpu")) {
            put(gpu, 0);
        }
    }
}

fn total(root: &Node) -> u64 {
    let roles = root.get("roles").map(Node::entries).unwrap_or_default();
    roles.iter().filter_map(|role| instances_of(&role.value)).map(u64::from).sum()
}

/// How many instances a role has; `None` if it is not a number, which is already an error.
fn instances_of(role: &Node) -> Option<u32> {
    match role.get("instances") {
        None => Some(1),
        Some(node) => number(node).and_then(|number| u32::try_from(number).ok()),
    }
}

fn number(node: &Node) -> Option<u64> {
    match &node.value {
        Value::Number { number, .. } => number.as_u64(),
        _ => None,
    }
}

/// Lowers a number to a maximum.
fn cap(parent: &mut Node, key: &str, max: u32) {
    if let Some(node) = child(parent, key).filter(|node| number(node).is_some_and(|n| n > u64::from(max))) {
        put(node, max);
    }
}

/// Puts a number at a place: findings about it point there.
fn put(node: &mut Node, number: u32) {
    node.value = Value::Number { number: number.into(), text: number.to_string() };
}

fn child<'a>(node: &'a mut Node, key: &str) -> Option<&'a mut Node> {
    entries(node).iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.value)
}

fn entries(node: &mut Node) -> &mut [crate::document::Entry] {
    if let Value::Mapping(entries) = &mut node.value { entries } else { &mut [] }
}

#[cfg(test)]
mod tests;
