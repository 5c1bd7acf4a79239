//! The resources of an instance of a task role.

use serde_json::{Map, Value as Json, json};

use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::document::Entry;
use crate::import::fields::{Fields, wrong};
use crate::import::nodes::{entry, map, number, string};
use crate::openpai::{MAX_LABEL, OWN_PORTS, SHM_MIB, converted};

/// `resourcePerInstance` and `extraContainerOptions`.
pub(super) fn read(
    role: &Fields<'_>,
    unasked: bool,
    kept: &mut Map<String, Json>,
    sink: &mut Sink,
) -> Option<Entry> {
    let (field, wanted) = role
        .required("resourcePerInstance", sink)
        .and_then(|_| role.map("resourcePerInstance", "a map of `cpu`, `memoryMB` and `gpu`", sink))?;
    let elsewhere = [
        ("shmMB", "it in `extraContainerOptions` of the task role"),
        ("infiniband", "it in `extraContainerOptions` of the task role"),
        ("cpuNumber", "`cpu`"),
        ("gpuNumber", "`gpu`"),
        ("memory", "`memoryMB`, a number of MiB"),
        ("portList", "`ports`, as in `ports: {http: 1}`"),
        ("gpuType", "`skuType` in `hivedScheduler` of `extras`"),
    ];
    wanted.refuse_others_but(&["cpu", "memoryMB", "gpu", "ports"], &elsewhere, sink);
    let mut entries = vec![];
    let mut need =
        |name: &str, least: i64| wanted.required(name, sink).and_then(|_| wanted.number(name, least, sink));
    let (cpu, memory, gpu) = (need("cpu", 1), need("memoryMB", 1), need("gpu", 0));
    if let Some((field, count)) = cpu {
        entries.push(entry("cpu", field.key_span, number(field.value.span, count)));
    }
    if let Some((field, count)) = memory {
        entries.push(entry("memory", field.key_span, string(field.value.span, format!("{count}MiB"))));
    }
    let max = memory.map_or(u64::MAX, |(_, count)| count);
    entries.extend(container_options(role, max, unasked, kept, sink));
    if let Some((field, count)) = gpu {
        entries.push(entry("gpu", field.key_span, number(field.value.span, count)));
    }
    if let Some((field, ports)) = wanted.map("ports", "a map of labels to how many ports", sink) {
        entries.extend(ports_of(field, &ports, kept, sink));
    }
    Some(entry("resources", field.key_span, map(field.value.span, entries)))
}

fn container_options(
    role: &Fields<'_>,
    max: u64,
    unasked: bool,
    kept: &mut Map<String, Json>,
    sink: &mut Sink,
) -> Vec<Entry> {
    let mut entries = vec![];
    let options = role.map("extraContainerOptions", "a map of `shmMB` and `infiniband`", sink);
    let shm = options.as_ref().and_then(|(_, options)| {
        options.refuse_others(&["shmMB", "infiniband"], sink);
        options.number("shmMB", 0, sink).filter(|(_, count)| *count > 0)
    });
    if let Some((field, count)) = shm {
        let text = string(field.value.span, format!("{count}MiB"));
        entries.push(entry("shm", field.key_span, text));
        // Explicit values are visible to the tasks and implicit ones are not, even if they are equal.
        if unasked && count == SHM_MIB {
            kept.insert("extraContainerOptions".to_owned(), json!({ "shmMB": count }));
        }
    } else if unasked {
        let text = format!("{}MiB", SHM_MIB.min(max));
        entries.push(entry("shm", role.place, string(role.place, text)));
    }
    if let Some((field, true)) = options.and_then(|(_, options)| options.flag("infiniband", sink)) {
        entries.push(entry("rdma", field.key_span, number(field.value.span, 1)));
    }
    entries
}

/// Ports by label and number; OpenPAI chooses the port numbers.
fn ports_of(
    field: &Entry,
    ports: &Fields<'_>,
    kept: &mut Map<String, Json>,
    sink: &mut Sink,
) -> Option<Entry> {
    let mut entries: Vec<Entry> = vec![];
    let mut labels = Map::new();
    if ports.node.entries().is_empty() {
        wrong(field, "a map of at least one label", sink);
    }
    for port in ports.node.entries() {
        let Some((_, count)) = ports.number(&port.key, 1, sink) else { continue };
        let Some(ours) = converted(&port.key, MAX_LABEL, true) else {
            let message = format!("`{}` is not the label of a port", port.key);
            sink.push(
                Diagnostic::error(codes::OPENPAI_VALUE, message)
                    .at_span(port.key_span, "")
                    .note("OpenPAI takes letters, digits and `_`, and no digit first"),
            );
            continue;
        };
        if let Some(other) = entries.iter().find(|other| other.key == ours) {
            sink.push(
                Diagnostic::error(codes::OPENPAI_SAME_NAME, format!("two ports get the label `{ours}`"))
                    .at_span(port.key_span, "the second")
                    .at_span(other.key_span, "the first")
                    .note("labels have at most 15 lower-case letters, digits and `-` here; rename one"),
            );
            continue;
        }
        if ours.replace('-', "_") != port.key || OWN_PORTS.contains(&ours.as_str()) {
            labels.insert(port.key.clone(), count.into());
        }
        let at = port.value.span;
        let mut rules = vec![entry("port", port.key_span, string(at, "auto"))];
        if count > 1 {
            rules.push(entry("count", port.key_span, number(at, count)));
        }
        entries.push(entry(ours, port.key_span, map(at, rules)));
    }
    if !labels.is_empty() {
        kept.insert("resourcePerInstance".to_owned(), json!({ "ports": labels }));
    }
    (!entries.is_empty()).then(|| entry("ports", field.key_span, map(field.value.span, entries)))
}
