//! Converts what services of Compose have: published ports, and `deploy`.

use serde_json::{Map, Value as Json, json};

use crate::document::{Node, Value};

use super::report::source_text;

/// A port of a service.
struct ServicePort {
    /// The port of the host.
    host: Option<u64>,
    /// The port inside the container.
    inside: u64,
}

/// `80`, `8080:80`, `127.0.0.1:8080:80/tcp`, or `{target: 80, published: 8080}`; nothing for UDP. A port at one address
/// of the host is not published, for a job would publish it at all of them.
fn service_port(node: &Node) -> Option<ServicePort> {
    let number =
        |text: &str| text.parse::<u64>().ok().filter(|port| (1..=u64::from(u16::MAX)).contains(port));
    if let Some(target) = node.get("target") {
        if node.get("protocol").is_some_and(|protocol| source_text(protocol) != "tcp") {
            return None;
        }
        let published = node.get("published").filter(|_| node.get("host_ip").is_none());
        let host = published.map(|published| number(&source_text(published)));
        return Some(ServicePort { host: host.unwrap_or_default(), inside: number(&source_text(target))? });
    }
    let text = source_text(node);
    let text = text.strip_suffix("/tcp").unwrap_or(&text);
    let mut parts = text.rsplit(':');
    let inside = number(parts.next()?)?;
    let host = parts.next().and_then(number);
    Some(ServicePort { host: host.filter(|_| parts.next().is_none()), inside })
}

/// The ports of a list, with their labels.
fn labeled(node: &Node) -> Option<Vec<(String, ServicePort)>> {
    let items = match &node.value {
        Value::Sequence(items) => &items[..],
        Value::Mapping(_) => return None,
        _ => std::slice::from_ref(node),
    };
    let label = |at: usize| if at == 0 { "http".to_owned() } else { format!("port-{}", at + 1) };
    items.iter().enumerate().map(|(at, item)| Some((label(at), service_port(item)?))).collect()
}

/// `["8888:8888", 6006]` as a map of labels to the ports inside the container; one with a port of the host is published.
pub(super) fn ports(node: &Node) -> Option<Json> {
    let ports = labeled(node).filter(|ports| !ports.is_empty())?;
    Some(Json::Object(ports.into_iter().map(|(label, port)| (label, value(&port))).collect()))
}

/// One port, as the value of a label.
pub(super) fn port(node: &Node) -> Option<Json> {
    service_port(node).as_ref().map(value)
}

fn value(port: &ServicePort) -> Json {
    match port.host {
        Some(_) => json!({ "port": port.inside, "publish": "host" }),
        None => json!(port.inside),
    }
}

/// The options of `jobc run` for ports of the host that differ from those inside, which a job file cannot have.
pub(super) fn publish_options(role: &str, node: &Node) -> Vec<String> {
    let option = |(label, port): (String, ServicePort)| {
        let host = port.host.filter(|host| *host != port.inside)?;
        Some(format!("--publish {host}:{role}-0:{label}"))
    };
    labeled(node).unwrap_or_default().into_iter().filter_map(option).collect()
}

/// What `deploy` of a service is in a role.
pub(super) struct Deployment {
    /// `instances`.
    pub(super) instances: Option<Json>,
    /// The keys of `resources`.
    pub(super) resources: Map<String, Json>,
    /// Whether a part of it has no counterpart.
    pub(super) has_more: bool,
}

/// Converts `replicas`, limits, reservations and GPUs.
pub(super) fn deployment(node: &Node) -> Deployment {
    let mut all = Deployment { instances: None, resources: Map::new(), has_more: false };
    let mut resources = Map::new();
    for entry in node.entries() {
        match (entry.key.as_str(), &entry.value.value) {
            ("replicas", Value::Number { number, .. }) => all.instances = Some(json!(number)),
            ("resources", Value::Mapping(_)) => {
                // The request is also the limit, and the limit is the larger of the two.
                for kind in ["reservations", "limits"] {
                    let amounts = entry.value.get(kind).map_or(&[][..], Node::entries);
                    for amount in amounts {
                        match resource(&amount.key, &amount.value) {
                            Some((key, value)) => drop(resources.insert(key.to_owned(), value)),
                            None => all.has_more = true,
                        }
                    }
                }
            }
            _ => all.has_more = true,
        }
    }
    let in_order = ["cpu", "memory", "pids", "gpu"].into_iter();
    all.resources = in_order.filter_map(|key| resources.remove_entry(key)).collect();
    all
}

fn resource(key: &str, node: &Node) -> Option<(&'static str, Json)> {
    match key {
        "cpus" => {
            let cpus = source_text(node).parse::<f64>().ok().filter(|cpus| cpus.is_finite())?;
            let whole: Option<u64> = source_text(node).parse().ok();
            Some(("cpu", whole.map_or_else(|| json!(cpus), |whole| json!(whole))))
        }
        "memory" => Some(("memory", memory(&source_text(node))?)),
        "pids" => source_text(node).parse::<u64>().ok().map(|pids| ("pids", json!(pids))),
        "devices" => Some(("gpu", gpus(node.items())?)),
        _ => None,
    }
}

/// `512M` and `4gb`, whose units are powers of 1024.
fn memory(text: &str) -> Option<Json> {
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic())?);
    let unit = match unit.to_ascii_lowercase().as_str() {
        "k" | "kb" => "KiB",
        "m" | "mb" => "MiB",
        "g" | "gb" => "GiB",
        _ => return None,
    };
    number.trim().parse::<f64>().ok().map(|_| json!(format!("{}{unit}", number.trim())))
}

/// The number of GPUs of a list of devices, or `all`; nothing if one is another device.
fn gpus(devices: &[Node]) -> Option<Json> {
    let mut sum: u64 = 0;
    let mut all = false;
    for device in devices {
        let capabilities = device.get("capabilities").map_or(&[][..], Node::items);
        if !capabilities.iter().any(|capability| capability.as_str() == Some("gpu")) {
            return None;
        }
        let count = match (device.get("count"), device.get("device_ids")) {
            (Some(count), _) if source_text(count) != "all" => source_text(count).parse().ok()?,
            (None, Some(ids)) => u64::try_from(ids.items().len()).ok()?,
            _ => {
                all = true;
                continue;
            }
        };
        sum = sum.saturating_add(count);
    }
    (sum > 0 || all).then(|| if all { json!("all") } else { json!(sum) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Sink;
    use crate::parse::parse;
    use crate::source::{Source, Sources};

    fn node(text: &str) -> Node {
        let mut sources = Sources::new();
        let id = sources.add(Source::new("job.yaml", format!("a: {text}\n")));
        parse(&sources, id, &mut Sink::new()).unwrap().root.get("a").unwrap().clone()
    }

    #[test]
    fn published_ports_are_converted() {
        let check = |text: &str, expected: Json, options: &[&str]| {
            assert_eq!(ports(&node(text)).unwrap_or_default(), expected, "{text}");
            assert_eq!(publish_options("web", &node(text)), options, "{text}");
        };
        let published = |port: u64| json!({"port": port, "publish": "host"});
        check("['8888:8888', 6006]", json!({"http": published(8888), "port-2": 6006}), &[]);
        check("8080:80", json!({"http": published(80)}), &["--publish 8080:web-0:http"]);
        check("['127.0.0.1:8888:8888/tcp']", json!({"http": 8888}), &[]);
        check("['53:53/udp']", Json::Null, &[]);
        check("[{target: 53, protocol: udp}]", Json::Null, &[]);
        check("[{target: 80, published: 80, host_ip: 127.0.0.1}]", json!({"http": 80}), &[]);
        let long = "[{target: 80, published: '8080'}, {target: 81}]";
        check(long, json!({"http": published(80), "port-2": 81}), &["--publish 8080:web-0:http"]);
        check("['8888:web']", Json::Null, &[]);
        check("['8000-8001:8000-8001']", Json::Null, &[]);
        check("[]", Json::Null, &[]);
    }

    #[test]
    fn deployments_are_converted() {
        let check = |text: &str, instances: Json, resources: Json, has_more: bool| {
            let found = deployment(&node(text));
            assert_eq!(found.instances.unwrap_or_default(), instances, "{text}");
            assert_eq!((Json::Object(found.resources), found.has_more), (resources, has_more), "{text}");
        };
        let devices = |text: &str| format!("{{resources: {{reservations: {{devices: [{text}]}}}}}}");
        check("{replicas: 2}", json!(2), json!({}), false);
        let limits =
            "{resources: {limits: {cpus: '0.5', memory: 512M}, reservations: {cpus: '0.25', pids: 9}}}";
        check(limits, Json::Null, json!({"cpu": 0.5, "pids": 9, "memory": "512MiB"}), false);
        check("{resources: {limits: {memory: lots}}, placement: {}}", Json::Null, json!({}), true);
        check(
            &devices("{driver: nvidia, count: 2, capabilities: [gpu]}"),
            Json::Null,
            json!({"gpu": 2}),
            false,
        );
        check(&devices("{capabilities: [gpu], count: all}"), Json::Null, json!({"gpu": "all"}), false);
        check(&devices("{capabilities: [gpu]}"), Json::Null, json!({"gpu": "all"}), false);
        check(
            &devices("{capabilities: [gpu], device_ids: ['0', '3']}"),
            Json::Null,
            json!({"gpu": 2}),
            false,
        );
        check(&devices("{capabilities: [tpu], count: 1}"), Json::Null, json!({}), true);
    }
}
