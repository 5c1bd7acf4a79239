//! Ports, networks and names of a container.

use serde_json::json;

use crate::source::Span;

use super::super::draft::Draft;
use super::super::nodes::{json, string};
use super::role::Role;

/// `[[ADDRESS:]HOST:]PORT[/PROTOCOL]`, each a number or a range.
pub(in super::super) fn port(role: &mut Role<'_, '_>, text: &str, part: Span) {
    let (ports, protocol) = text.split_once('/').unwrap_or((text, "tcp"));
    if protocol != "tcp" {
        return role.draft.changed(
            part,
            format!("the port {ports} of {protocol} is not published on the host"),
            "roles reach it by the name of the instance; jobc publishes ports of TCP",
        );
    }
    let (host, inside) = match ports.rsplit_once(':') {
        Some((host, inside)) => (host.rsplit(':').next().filter(|host| !host.is_empty()), inside),
        None => (None, ports),
    };
    let range = |text: &str| -> Option<(u16, u16)> {
        let (from, to) = text.split_once('-').unwrap_or((text, text));
        let (from, to) = (from.parse().ok()?, to.parse().ok()?);
        (from > 0 && from <= to).then_some((from, to))
    };
    if inside.contains("${{") {
        // A number that is known when the job is built.
        let count = role.get(&["resources", "ports"]).map_or(0, |ports| ports.entries().len());
        if host.is_some_and(|host| host.contains("${{") && host != inside) {
            role.draft.changed(
                part,
                "the port is the same on the host",
                "`jobc run -p HOST:PORT` publishes another port of the host",
            );
        }
        let rules = json!({"port": inside, "publish": "host"});
        return role.field(&["resources", "ports", &format!("port{}", count + 1)], part, json(part, &rules));
    }
    let Some((from, to)) = range(inside) else {
        return role.draft.invalid(part, format!("`{text}` is not a port such as `8888` or `8888:8888`"), "");
    };
    if host.and_then(range).is_some_and(|(host, _)| host != from) {
        role.draft.changed(
            part,
            format!("the port is {from} on the host too, not {}", host.unwrap_or_default()),
            "`jobc run -p HOST:PORT` publishes another port of the host",
        );
    }
    let mut rules = json!({"port": from, "publish": "host"});
    if to > from {
        rules["count"] = json!(to - from + 1);
    }
    role.field(&["resources", "ports", &format!("p{from}")], part, json(part, &rules));
}

/// `--network` and `network_mode`.
pub(in super::super) fn network(draft: &mut Draft<'_>, text: &str, part: Span) {
    match text.split(':').next().unwrap_or_default() {
        "host" | "none" => draft.field(&["network"], part, string(part, text)),
        "bridge" | "default" | "private" | "slirp4netns" | "pasta" => {
            draft.note(part, "the default network of the engine");
        }
        "service" => {
            draft.field(&["network"], part, string(part, "host"));
            draft.changed(
                part,
                "all roles share the network of the host, not two services one of their own",
                "they reach each other on `localhost`; ports of the host must be free",
            );
        }
        "container" | "ns" | "pod" => draft.refuse(
            part,
            "the container is in the network of another one",
            "use the network of the host, where roles reach each other on `localhost`",
        ),
        _ => draft.field(&["network"], part, string(part, "job")),
    }
}

/// `NAME:ADDRESS` or `NAME=ADDRESS`.
pub(in super::super) fn extra_host(draft: &mut Draft<'_>, text: &str, part: Span) {
    match text.split_once('=').or_else(|| text.split_once(':')) {
        Some((name, address)) if !name.is_empty() => {
            draft.field(&["extra_hosts", name], part, string(part, address));
        }
        _ => draft.invalid(part, format!("`{text}` is not NAME:ADDRESS"), ""),
    }
}
