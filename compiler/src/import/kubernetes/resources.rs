//! `resources` of a container.

use crate::document::{Entry, Node};
use crate::source::Span;

use super::super::container::size;
use super::super::nodes::{json, number, string};
use super::super::values::scalar;
use super::facts::number_of;
use super::gpus;
use super::reader::Pod;

/// Whether a container of a pod requests some of a resource.
pub(super) fn requests(spec: &Node, resource: &str) -> bool {
    let of = |container: &Node| {
        let all = container.get("resources")?;
        ["limits", "requests"]
            .iter()
            .find_map(|kind| all.get(kind).and_then(|amounts| amounts.get(resource)))?;
        Some(())
    };
    spec.get("containers").is_some_and(|all| all.items().iter().any(|container| of(container).is_some()))
}

/// Bytes of a quantity of Kubernetes: `64Gi`, `1500M`, `1e9`, `128974848`, `500m`.
pub(super) fn bytes(text: &str) -> Option<u64> {
    let amount = quantity(text)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is checked to be in range"
    )]
    (0.0..1e18).contains(&amount).then(|| amount.ceil() as u64)
}

/// A quantity of Kubernetes.
pub(super) fn quantity(text: &str) -> Option<f64> {
    let text = text.trim();
    if let Ok(plain) = text.parse::<f64>() {
        return plain.is_finite().then_some(plain);
    }
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (digits, unit) = text.split_at(at);
    let factor = match unit {
        "n" => 1e-9,
        "u" => 1e-6,
        "m" => 1e-3,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "Ki" => 1024.0,
        "Mi" => 1_048_576.0,
        "Gi" => 1_073_741_824.0,
        "Ti" => 1_099_511_627_776.0,
        "Pi" => 1_125_899_906_842_624.0,
        _ => return None,
    };
    digits.parse::<f64>().ok().map(|number| number * factor)
}

/// An amount of memory as people write it: in powers of 1000 where the source has them.
pub(super) fn memory(text: &str) -> Option<String> {
    let all = bytes(text)?;
    let decimal = text.strip_suffix(['k', 'M', 'G', 'T']).filter(|digits| digits.parse::<u64>().is_ok());
    Some(match decimal {
        Some(digits) => format!("{digits}{}B", text[digits.len()..].to_uppercase().replace('K', "k")),
        None => size(all),
    })
}

/// Reads `resources`, of a container or of a pod.
pub(super) fn read(pod: &mut Pod<'_, '_, '_>, node: &Node) {
    let limits = node.get("limits").map_or(&[][..], Node::entries);
    let requests = node.get("requests").map_or(&[][..], Node::entries);
    let in_limits = |name: &str| limits.iter().find(|limit| limit.key == name);
    let mut devices: Vec<&Entry> = Vec::new();
    for request in requests {
        match in_limits(&request.key) {
            Some(limit) if amount(limit) == amount(request) => {
                pod.role.draft.note(request.key_span, "a job requests what it limits");
            }
            Some(limit) => pod.role.draft.changed(
                request.key_span,
                format!(
                    "the job requests its limit of {}, {}, not {}",
                    request.key,
                    scalar(&limit.value).unwrap_or_default(),
                    scalar(&request.value).unwrap_or_default()
                ),
                "a job's request and limit are one; write the amount that it needs",
            ),
            None => one(pod, request, &mut devices),
        }
    }
    for limit in limits {
        one(pod, limit, &mut devices);
    }
    gpus::read(pod, &devices);
    for entry in node.entries() {
        match entry.key.as_str() {
            "limits" | "requests" if entry.value.entries().is_empty() => {
                pod.role.draft.note(entry.key_span, "empty: the default");
            }
            "limits" | "requests" => {}
            "claims" => {
                for item in entry.value.items() {
                    gpus::claim(pod, item);
                }
            }
            key => {
                pod.role.draft.invalid(entry.key_span, format!("unknown field `{key}` of `resources`"), "");
            }
        }
    }
}

fn amount(entry: &Entry) -> Option<f64> {
    scalar(&entry.value).and_then(|text| quantity(&text))
}

/// What to do with a manifest that a program fills in before it is applied.
const TEMPLATE: &str = "import the manifest with its values: `envsubst <FILE | jobc import -`";

fn one<'e>(pod: &mut Pod<'_, '_, '_>, entry: &'e Entry, devices: &mut Vec<&'e Entry>) {
    let part = entry.key_span;
    let text = scalar(&entry.value).unwrap_or_default();
    let Some(amount) = quantity(&text) else {
        return pod.role.draft.invalid(
            part,
            format!("`{text}` is not a quantity such as `500m`, `4` or `16Gi`"),
            if text.contains('$') { TEMPLATE } else { "" },
        );
    };
    match entry.key.as_str() {
        _ if amount == 0.0 => pod.role.draft.note(part, "none"),
        "cpu" => cpus(pod, &text, amount, part),
        "memory" => bytes_at(pod, &["resources", "memory"], &text, part),
        "ephemeral-storage" => bytes_at(pod, &["resources", "disk"], &text, part),
        name if name.starts_with("hugepages-") => {
            let page = memory(&name["hugepages-".len()..]).unwrap_or_default();
            bytes_at(pod, &["resources", "hugepages", &page], &text, part);
        }
        name if is_rdma(name) => {
            pod.settings.role(pod.role.name, &["rdma"], part, string(part, name));
            match number_of(&entry.value) {
                Some(count) => pod.role.field(&["resources", "rdma"], part, number(part, count)),
                None => pod.role.draft.invalid(part, format!("`{text}` is not a number"), ""),
            }
        }
        _ => devices.push(entry),
    }
}

fn is_rdma(name: &str) -> bool {
    name.starts_with("rdma/")
        || name.ends_with("/rdma")
        || name.contains("/hca")
        || name == "vpc.amazonaws.com/efa"
}

fn cpus(pod: &mut Pod<'_, '_, '_>, text: &str, amount: f64, part: Span) {
    let value = match text.parse::<u64>() {
        Ok(whole) => number(part, whole),
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is checked to be in range"
        )]
        Err(_) if amount.fract() == 0.0 && (0.0..1e9).contains(&amount) => number(part, amount as u64),
        Err(_) => json(part, &serde_json::json!(amount)),
    };
    pod.role.field(&["resources", "cpu"], part, value);
}

fn bytes_at(pod: &mut Pod<'_, '_, '_>, path: &[&str], text: &str, part: Span) {
    match memory(text) {
        Some(amount) => pod.role.field(path, part, string(part, amount)),
        None => pod.role.draft.invalid(part, format!("`{text}` is not an amount of bytes"), ""),
    }
}

#[cfg(test)]
mod tests {
    use super::memory;

    #[test]
    fn quantities_keep_their_units() {
        let texts = ["64Gi", "1500M", "512Mi", "16G", "1073741824", "128974848", "1e9", "1.5Gi"];
        let read = texts.map(|text| memory(text).unwrap_or_default());
        assert_eq!(read, ["64GiB", "1500MB", "512MiB", "16GB", "1GiB", "123MiB", "976563KiB", "1536MiB"]);
        assert_eq!(memory("lots"), None);
    }
}
