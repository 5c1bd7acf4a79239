//! Ports and probes.

use serde_json::json;

use crate::document::Node;
use crate::source::Span;

use super::super::amounts::duration;
use super::super::keyed::only;
use super::super::nodes::{json, sequence, string};
use super::super::values::{scalar, text_at, text_in, texts};
use super::env::label;
use super::facts::number_of;
use super::reader::Pod;

/// Ports that operators and frameworks name, and that jobc opens itself where they are needed.
const OF_OPERATORS: &[&str] = &["pytorchjob-port", "tfjob-port", "xgboostjob-port"];
const OF_RAY: &[u64] = &[6379, 8265, 10001, 8000, 8080];

/// Reads `ports`.
pub(super) fn ports(pod: &mut Pod<'_, '_, '_>, node: &Node) {
    for item in node.items() {
        let part = item.span;
        let Some(number) =
            item.get("containerPort").and_then(number_of).filter(|number| (1..=65535).contains(number))
        else {
            pod.role.draft.invalid(part, "`containerPort` is not a port", "");
            continue;
        };
        let name = text_at(item, "name").unwrap_or_default();
        let is_of_ray = pod.context.kind.name == "RayJob" && OF_RAY.contains(&number);
        if OF_OPERATORS.contains(&name.as_str()) || is_of_ray {
            pod.role.draft.note(part, "jobc opens the ports of the framework");
            continue;
        }
        if text_at(item, "protocol").is_some_and(|protocol| protocol != "TCP") {
            pod.role.draft.note(part, "instances of a job reach all ports of each other");
            continue;
        }
        let name = label(&name).unwrap_or(format!("p{number}"));
        let rules = match item.get("hostPort").and_then(number_of) {
            Some(host) => {
                if host != number {
                    let message = format!("the port is {number} on the host too, not {host}");
                    pod.role.draft.changed(part, message, "");
                }
                json(part, &json!({"port": number, "publish": "host"}))
            }
            None if is_published(pod, &name) => json(part, &json!({"port": number, "publish": "service"})),
            None => super::super::nodes::number(part, number),
        };
        pod.role.field(&["resources", "ports", &name], part, rules);
    }
}

/// Whether a Service that jobc wrote for the role has a port.
fn is_published(pod: &Pod<'_, '_, '_>, port: &str) -> bool {
    let service = format!("{}-{}", pod.context.job, pod.role.name);
    let of_jobc = |object: &Node| {
        let label = ["metadata", "labels", "app.kubernetes.io/managed-by"];
        text_in(object, &label).as_deref() == Some("jobc")
    };
    let Some(found) = pod.context.objects.get("Service", &service, "resources.ports") else { return false };
    let ports = ["spec", "ports"].iter().try_fold(found, |node, key| node.get(key));
    let names = ports.map_or(&[][..], Node::items).iter().filter_map(|port| text_at(port, "name"));
    of_jobc(found) && names.into_iter().any(|name| name == port)
}

/// Reads a startup or readiness probe.
pub(super) fn probe(pod: &mut Pod<'_, '_, '_>, container: &Node, name: &str, node: &Node, part: Span) {
    let startup = container.get("startupProbe");
    if name == "readinessProbe" && startup.is_some() {
        // jobc writes both for `keep`.
        return pod.role.field(&["ready", "keep"], part, json(part, &json!(true)));
    }
    let role = pod.role.name;
    for entry in node.entries() {
        let at = entry.key_span;
        let seconds = number_of(&entry.value);
        match entry.key.as_str() {
            "exec" => {
                only(&entry.value, &["command"], "`exec`", pod.role.draft);
                let words = entry.value.get("command").map(texts).unwrap_or_default();
                let words = words.into_iter().map(|(word, span)| string(span, word)).collect();
                pod.role.field(&["ready", "exec"], at, sequence(entry.value.span, words));
            }
            "tcpSocket" => {
                only(&entry.value, &["host", "port"], "`tcpSocket`", pod.role.draft);
                if let Some(port) = port(pod, container, &entry.value, at) {
                    pod.role.field(&["ready", "port"], at, string(at, port));
                }
            }
            "httpGet" => {
                let keys = ["host", "httpHeaders", "path", "port", "scheme"];
                only(&entry.value, &keys, "`httpGet`", pod.role.draft);
                for other in
                    entry.value.entries().iter().filter(|other| keys[..2].contains(&other.key.as_str()))
                {
                    let message = format!("`{}` of the check has no counterpart", other.key);
                    pod.role.draft.changed(other.key_span, message, "write `ready: {exec: [curl, …]}`");
                }
                if text_at(&entry.value, "scheme").is_some_and(|scheme| scheme == "HTTPS") {
                    let message = "the check asks by HTTP, not HTTPS";
                    pod.role.draft.changed(at, message, "write `ready: {exec: [curl, -k, …]}`, or `port`");
                }
                if let Some(port) = port(pod, container, &entry.value, at) {
                    let mut rules = json!({ "port": port });
                    if let Some(path) = text_at(&entry.value, "path").filter(|path| path != "/") {
                        rules["path"] = json!(path);
                    }
                    pod.role.field(&["ready", "http"], at, json(at, &rules));
                }
            }
            "grpc" => {
                only(&entry.value, &["port", "service"], "`grpc`", pod.role.draft);
                if let Some(port) = port(pod, container, &entry.value, at) {
                    pod.role.field(&["ready", "port"], at, string(at, port));
                }
                let instead = "write `ready: {exec: [grpc_health_probe, …]}` for the answer of the program";
                pod.role.draft.changed(at, "the check by gRPC is one of its port", instead);
            }
            "initialDelaySeconds" => pod.seconds(&["ready", "delay"], &entry.value, at),
            "periodSeconds" if seconds == Some(10) => pod.role.draft.note(at, "the default"),
            "periodSeconds" => pod.seconds(&["ready", "every"], &entry.value, at),
            "timeoutSeconds" if seconds == Some(1) => pod.role.draft.note(at, "the default"),
            "timeoutSeconds" => pod.seconds(&["ready", "try_timeout"], &entry.value, at),
            "failureThreshold" => {
                let of = |key: &str, default: u64| node.get(key).and_then(number_of).unwrap_or(default);
                let total = of("periodSeconds", 10).saturating_mul(seconds.unwrap_or(3));
                let total = total.saturating_add(of("initialDelaySeconds", 0));
                if name == "startupProbe" {
                    pod.role.field(&["ready", "timeout"], at, string(at, duration(total)));
                } else {
                    pod.role.draft.note(at, "`ready` is tried until its `timeout`");
                }
            }
            "successThreshold" => pod.role.draft.note(at, "one success is enough"),
            "terminationGracePeriodSeconds" => pod.role.draft.note(at, "`grace_period` of the role"),
            key => pod.role.draft.invalid(at, format!("unknown field `{key}` of a probe"), ""),
        }
    }
    if pod.role.get(&["ready"]).is_none() {
        pod.role.draft.account.note(part, format!("no check of the role `{role}`"));
    }
}

/// The label of the port of a probe; the role has it.
fn port(pod: &mut Pod<'_, '_, '_>, container: &Node, check: &Node, part: Span) -> Option<String> {
    let wanted = check.get("port").and_then(scalar)?;
    let ports = container.get("ports").map_or(&[][..], Node::items);
    let named = ports.iter().find(|port| {
        text_at(port, "name").as_ref() == Some(&wanted)
            || text_at(port, "containerPort").as_ref() == Some(&wanted)
    });
    let number =
        named.and_then(|port| port.get("containerPort")).and_then(number_of).or_else(|| wanted.parse().ok());
    let Some(value) = number.filter(|port| (1..=65535).contains(port)) else {
        pod.role.draft.invalid(part, format!("`{wanted}` is not a port of the container"), "");
        return None;
    };
    let name = named.and_then(|port| text_at(port, "name")).and_then(|name| label(&name));
    let name = name.unwrap_or(format!("p{value}"));
    if pod.role.get(&["resources", "ports", &name]).is_none() {
        let path = ["roles", pod.role.name, "resources", "ports", &name];
        pod.role.draft.set(&path, part, super::super::nodes::number(part, value));
    }
    Some(name)
}
