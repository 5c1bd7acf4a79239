//! `deploy` of a service: replicas, resources, and GPUs.

use serde_json::json;

use crate::document::Node;

use super::super::super::container;
use super::super::super::nodes::json;
use super::super::super::values::{is_empty, scalar, text_at, texts};
use super::Service;

impl Service<'_, '_, '_> {
    /// Reads `deploy`.
    pub(super) fn deploy(&mut self, node: &Node) {
        read(self, node);
    }

    /// Reads an item of `gpus`.
    pub(super) fn device(&mut self, item: &Node) {
        device(self, item);
    }
}

/// Reads `deploy`.
fn read(service: &mut Service<'_, '_, '_>, node: &Node) {
    for entry in node.entries() {
        let part = entry.key_span;
        let text = scalar(&entry.value).map(|text| service.text(&text, part)).unwrap_or_default();
        match entry.key.as_str() {
            "mode" if text == "global" || text == "global-job" => {
                service.role.draft.changed(
                    part,
                    "one container on each node: the job has one",
                    "write `instances: N` in a job file for more",
                );
            }
            "mode" => service.role.draft.note(part, "the default"),
            "replicas" => service.instances(&text, part),
            "resources" => resources(service, &entry.value),
            "restart_policy" => restart(service, &entry.value),
            _ => service.role.draft.note(part, "a setting of Swarm"),
        }
    }
}

fn resources(service: &mut Service<'_, '_, '_>, node: &Node) {
    super::super::super::keyed::only(node, &["limits", "reservations"], "`resources`", service.role.draft);
    for group in node.entries() {
        for entry in group.value.entries() {
            let part = entry.key_span;
            let text = scalar(&entry.value).map(|text| service.text(&text, part)).unwrap_or_default();
            match (group.key.as_str(), entry.key.as_str()) {
                (_, "devices") => entry.value.items().iter().for_each(|item| device(service, item)),
                ("limits", "cpus") => container::cpus(&mut service.role, &text, part),
                ("limits", "memory") => container::limit(&mut service.role, "memory", &text, part),
                ("limits", "pids") => container::limit_count(&mut service.role, "pids", &text, part),
                (_, "generic_resources") => {
                    service.role.draft.refuse(part, "resources that Swarm counts", "write `gpus: N`");
                }
                ("reservations", _) => service.role.draft.note(part, "the limit is the request too"),
                _ => service.role.draft.invalid(part, format!("unknown key `{}`", entry.key), ""),
            }
        }
        if is_empty(&group.value) {
            service.role.draft.note(group.key_span, "empty: the default");
        }
    }
}

/// A request of devices: `{driver, count, device_ids, capabilities}`; without a number all of them.
fn device(service: &mut Service<'_, '_, '_>, item: &Node) {
    let part = item.span;
    let capabilities = item.get("capabilities").map(texts).unwrap_or_default();
    let names: Vec<&str> = capabilities.iter().map(|(name, _)| name.as_str()).collect();
    let driver = text_at(item, "driver").map(|text| service.text(&text, part)).unwrap_or_default();
    if driver == "cdi" {
        for (device, _) in item.get("device_ids").map(texts).unwrap_or_default() {
            container::device(&mut service.role, &device, part);
        }
        return;
    }
    if !names.contains(&"gpu") && driver != "nvidia" && !names.is_empty() {
        return service.role.draft.refuse(
            part,
            format!("devices with the capabilities {}", names.join(", ")),
            "write the path of a device as `devices`",
        );
    }
    let count = text_at(item, "count").map(|text| service.text(&text, part));
    let devices = item.get("device_ids").map(texts).unwrap_or_default();
    if let Some(count) = count.as_ref().filter(|count| count.contains("${{")) {
        return service.role.field(&["resources", "gpu"], part, json(part, &json!(count)));
    }
    let mut devices: Vec<String> =
        devices.into_iter().map(|(device, _)| service.text(&device, part)).collect();
    if devices.iter().any(|device| device.contains("${{")) {
        service.role.draft.changed(
            part,
            "which GPUs is a variable: the job requests their number",
            "`jobc run --devices` chooses them",
        );
        devices = (0..devices.len()).map(|index| index.to_string()).collect();
        return service.role.field(&["resources", "gpu"], part, json(part, &json!(devices.len())));
    }
    let mut request = match (&devices[..], count) {
        ([], None) => "all".to_owned(),
        ([], Some(count)) => count,
        (devices, None) => format!("\"device={}\"", devices.join(",")),
        (devices, Some(count)) => format!("\"device={}\",count={count}", devices.join(",")),
    };
    if !names.is_empty() {
        request += &format!(",\"capabilities={}\"", names.join(","));
    }
    container::gpus(&mut service.role, &request, part);
}

fn restart(service: &mut Service<'_, '_, '_>, node: &Node) {
    let condition = text_at(node, "condition").unwrap_or("any".to_owned());
    let attempts = text_at(node, "max_attempts").map(|text| format!(":{text}")).unwrap_or_default();
    let path = ["roles", service.role.name, "retry"];
    for entry in node.entries() {
        let part = entry.key_span;
        match entry.key.as_str() {
            "condition" => {
                let policy = if condition == "on-failure" {
                    format!("{condition}{attempts}")
                } else {
                    condition.clone()
                };
                container::restart(service.role.draft, &path, &policy, part);
            }
            "max_attempts" if condition == "on-failure" => {
                service.role.draft.account.field(part, path.join(".") + ".max");
            }
            _ => service.role.draft.note(part, "`retry` repeats failures"),
        }
    }
}
