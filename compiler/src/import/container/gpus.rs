//! GPUs of a container: `--gpus`, `deploy.resources.reservations.devices`, `NVIDIA_VISIBLE_DEVICES` and CDI.

use serde_json::json;

use crate::source::Span;

use super::super::nodes::{json, number, string};
use super::role::Role;

/// `--gpus` by the rules of docker/cli `opts/gpus.go`: a number, `all`, or fields of CSV.
pub(in super::super) fn gpus(role: &mut Role<'_, '_>, text: &str, part: Span) {
    let fields = csv(text);
    let mut request = Request::default();
    for (index, field) in fields.iter().enumerate() {
        match field.split_once('=') {
            None if index == 0 && (field == "all" || field.parse::<u32>().is_ok()) => {
                request.count = Some(field.clone());
            }
            Some(("count", count)) => request.count = Some(count.to_owned()),
            Some(("device", devices)) => {
                request.devices = Some(devices.split(',').map(str::to_owned).collect());
            }
            Some(("capabilities", names)) => {
                request.capabilities = names.split(',').map(str::to_owned).collect();
            }
            Some(("driver" | "options", _)) => {}
            _ if field.parse::<u32>().is_ok() && text.contains("device=") => {
                return role.draft.invalid(
                    part,
                    "Docker reads the number behind the comma as another field",
                    "both pairs of quotes are needed: `--gpus '\"device=0,1\"'`",
                );
            }
            _ => {
                return role.draft.invalid(
                    part,
                    format!("`{field}` is not a field of `--gpus`"),
                    "the fields are `count`, `device`, `capabilities` and `driver`",
                );
            }
        }
    }
    request.write(role, part);
}

/// What a container requests.
#[derive(Debug, Default)]
struct Request {
    count: Option<String>,
    devices: Option<Vec<String>>,
    capabilities: Vec<String>,
}

impl Request {
    fn write(self, role: &mut Role<'_, '_>, part: Span) {
        let capabilities: Vec<String> = self
            .capabilities
            .into_iter()
            .filter(|name| !["gpu", "nvidia", "utility", "compute", ""].contains(&name.as_str()))
            .collect();
        let count = match (&self.devices, self.count.as_deref()) {
            (Some(devices), None) => {
                chosen(role, devices, part);
                Some(devices.len() as u64)
            }
            (Some(_), Some(_)) => {
                return role.draft.invalid(
                    part,
                    "`device` and `count` exclude each other",
                    "write one of them",
                );
            }
            (None, Some("all" | "-1")) => None,
            (None, Some(count)) => match count.parse() {
                Ok(count) => Some(count),
                Err(_) => return role.draft.invalid(part, format!("`{count}` is not a number of GPUs"), ""),
            },
            (None, None) => Some(1),
        };
        if !capabilities.is_empty() {
            let names = if capabilities.iter().any(|name| name == "all") {
                vec!["compute", "utility", "video", "graphics", "display"]
                    .into_iter()
                    .map(str::to_owned)
                    .collect()
            } else {
                capabilities
            };
            let names: Vec<String> =
                ["compute", "utility"].map(str::to_owned).into_iter().chain(names).collect();
            let mut unique: Vec<String> = Vec::new();
            for name in names {
                if !unique.contains(&name) {
                    unique.push(name);
                }
            }
            let count = count.unwrap_or(1);
            return role.field(
                &["resources", "gpu"],
                part,
                json(part, &json!({"count": count, "capabilities": unique})),
            );
        }
        let value = count.map_or_else(|| string(part, "all"), |count| number(part, count));
        role.field(&["resources", "gpu"], part, value);
    }
}

/// Says that the job requests a number of GPUs, not certain ones.
fn chosen(role: &mut Role<'_, '_>, devices: &[String], part: Span) {
    role.draft.changed(
        part,
        format!("the job requests {} of the GPUs, not these by their numbers", devices.len()),
        format!("`jobc run --devices {}` chooses them", devices.join(",")),
    );
}

/// The value of `NVIDIA_VISIBLE_DEVICES`.
pub(in super::super) fn visible_devices(role: &mut Role<'_, '_>, text: &str, part: Span) {
    match text {
        "none" | "void" | "" => role.field(&["resources", "gpu"], part, number(part, 0)),
        // The variable comes along with another request.
        _ if role.get(&["resources", "gpu"]).is_some() => {
            role.draft.note(part, "the GPUs are requested already");
        }
        "all" => role.field(&["resources", "gpu"], part, string(part, "all")),
        text => {
            let devices: Vec<String> = text.split(',').map(str::to_owned).collect();
            chosen(role, &devices, part);
            role.field(&["resources", "gpu"], part, number(part, devices.len() as u64));
        }
    }
}

/// A CDI name, `VENDOR/CLASS=DEVICE`.
pub(super) fn cdi(role: &mut Role<'_, '_>, text: &str, part: Span) {
    let (kind, device) = text.split_once('=').unwrap_or((text, ""));
    let vendor = match kind {
        "nvidia.com/gpu" => None,
        "amd.com/gpu" => Some("amd"),
        "intel.com/gpu" | "gpu.intel.com/gpu" => Some("intel"),
        _ => {
            return role.draft.refuse(
                part,
                format!("`{kind}` is not a kind of GPU that jobc knows"),
                "write the device's path, such as `/dev/fuse`",
            );
        }
    };
    if device == "all" {
        return role.field(&["resources", "gpu"], part, string(part, "all"));
    }
    let before = role.get(&["resources", "gpu"]).and_then(|gpu| match &gpu.value {
        crate::document::Value::Number { number, .. } => number.as_u64(),
        _ => gpu.get("count").and_then(|count| count.to_json().as_u64()),
    });
    let count = before.unwrap_or(0) + 1;
    let value = match vendor {
        None => number(part, count),
        Some(vendor) => json(part, &json!({"count": count, "vendor": vendor})),
    };
    role.field(&["resources", "gpu"], part, value);
}

/// The fields of a line of CSV.
fn csv(text: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            c => fields.last_mut().expect("one field").push(c),
        }
    }
    fields
}
