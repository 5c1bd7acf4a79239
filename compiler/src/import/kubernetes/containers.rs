//! The containers of a pod, and templates with some of them.

use std::collections::BTreeSet;

use crate::document::{Entry, Node};

use super::super::nodes::{entry, map, sequence};
use super::super::values::text_at;

/// Volumes that containers of the same pods hand to each other: the role of the program, and the name of the volume.
pub(super) type Handed = BTreeSet<(String, String)>;

/// The items of a list of a pod.
pub(super) fn items<'n>(spec: &'n Node, key: &str) -> &'n [Node] {
    spec.get(key).map_or(&[][..], Node::items)
}

/// The container that is the program: the one that operators look for by its name, else the first.
pub(super) fn program(spec: &Node) -> Option<&Node> {
    let all = items(spec, "containers");
    let named = |name: &str| all.iter().find(|item| text_at(item, "name").as_deref() == Some(name));
    ["pytorch", "tensorflow", "node", "main"].into_iter().find_map(named).or(all.first())
}

/// Whether a container of `initContainers` runs on beside the program.
pub(super) fn is_sidecar(item: &Node) -> bool {
    text_at(item, "restartPolicy").as_deref() == Some("Always")
}

/// The volumes that a container mounts.
pub(super) fn mounted(container: &Node) -> Vec<String> {
    let mounts = ["volumeMounts", "volumeDevices"].into_iter().filter_map(|key| container.get(key));
    mounts.flat_map(Node::items).filter_map(|mount| text_at(mount, "name")).collect()
}

/// A template with these containers, and the volumes that are kept.
pub(super) fn with(
    template: &Node,
    spec: &Node,
    before: &[Node],
    containers: &[Node],
    is_kept: &dyn Fn(&String) -> bool,
) -> Node {
    let changed = |known: &Entry| {
        let items = match known.key.as_str() {
            "initContainers" => before.to_vec(),
            "containers" => containers.to_vec(),
            // The containers before the program need no GPU.
            "tolerations" if !is_for_gpus(containers) => {
                let is_of_gpu =
                    |item: &&Node| text_at(item, "key").is_some_and(|key| key.ends_with(".com/gpu"));
                known.value.items().iter().filter(|item| !is_of_gpu(item)).cloned().collect()
            }
            "volumes" => {
                let is_kept = |volume: &&Node| text_at(volume, "name").is_none_or(|name| is_kept(&name));
                known.value.items().iter().filter(is_kept).cloned().collect()
            }
            _ => return Some(known.clone()),
        };
        let list = sequence(known.value.span, items);
        (!list.items().is_empty()).then(|| entry(known.key.clone(), known.key_span, list))
    };
    let spec = map(spec.span, spec.entries().iter().filter_map(changed).collect());
    let fields = template.entries().iter().map(|known| match known.key.as_str() {
        "spec" => entry("spec", known.key_span, spec.clone()),
        _ => known.clone(),
    });
    map(template.span, fields.collect())
}

/// Whether a container asks for GPUs.
fn is_for_gpus(containers: &[Node]) -> bool {
    let mut amounts = containers.iter().filter_map(|container| container.get("resources"));
    amounts.any(|resources| resources.to_json().to_string().contains("gpu"))
}
