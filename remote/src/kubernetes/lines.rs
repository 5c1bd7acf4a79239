//! The lines of the job file that parts of a job come from, kept in an annotation of the job's object.
//!
//! The source map stays on the host that submitted. What the cluster reports later is about a few fields; where these
//! come from travels with the job, so that any host can show a reason at its line.

use std::collections::BTreeMap;

use jobc_schema::pointer;
use serde_json::Value;

use super::state::{items, metadata, text};
use super::why::{Field, Reason};
use crate::built::{Manifest, pod_specs};

/// The annotation.
pub(crate) const LINES: &str = "jobc.dev/lines";
/// Annotations of an object may have 256 KiB together; a job with more lines than this shows none.
const MAX_BYTES: usize = 32 << 10;

/// Lines by part of the job: `train/image`, `train/nvidia.com/gpu`, `/queue`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Lines(BTreeMap<String, String>);

impl Lines {
    /// The lines of a manifest, from its source map.
    pub(crate) fn of_manifest(manifest: &Manifest) -> Self {
        let mut lines = BTreeMap::new();
        let mut add = |key: String, pointers: &[String]| {
            // What comes from a default has no line of its own, and the field above it is another one.
            let found = pointers.iter().find(|pointer| manifest.object.pointer(pointer).is_some());
            if let Some(place) = found.and_then(|pointer| manifest.origin(pointer)) {
                lines.insert(key, place);
            }
        };
        add(key(None, &Field::Role), &["/metadata/name".to_owned()]);
        add(key(None, &Field::Queue), &["/metadata/labels/kueue.x-k8s.io~1queue-name".to_owned()]);
        for (at, spec) in pod_specs(&manifest.object) {
            let above = at.strip_suffix("/spec").unwrap_or_default();
            let labels = manifest.object.pointer(&format!("{above}/metadata/labels"));
            let Some(role) = labels.and_then(|labels| labels.get("jobc.dev/role")).and_then(Value::as_str)
            else {
                continue;
            };
            let containers = items(spec, "/containers");
            let main = containers.enumerate().find(|(_, container)| text(container, "/name") == "main");
            let (index, container) = main.unwrap_or((0, &Value::Null));
            let main = format!("{at}/containers/{index}");
            let limits = container.pointer("/resources/limits").and_then(Value::as_object);
            for name in limits.into_iter().flat_map(|limits| limits.keys()) {
                let escaped = pointer::escape(name);
                let pointer = format!("{main}/resources/limits/{escaped}");
                add(key(Some(role), &Field::Resource(name.clone())), &[pointer]);
            }
            for (field, pointers) in [
                (Field::Image, vec![format!("{main}/image")]),
                (Field::Command, vec![format!("{main}/command"), format!("{main}/args")]),
                (Field::Volumes, vec![format!("{at}/volumes/0")]),
                (
                    Field::Placement,
                    ["nodeSelector", "affinity", "tolerations/0"].map(|key| format!("{at}/{key}")).to_vec(),
                ),
                (
                    Field::Security,
                    vec![format!("{main}/securityContext/runAsUser"), format!("{at}/securityContext")],
                ),
                (Field::Timeout, vec![format!("{at}/activeDeadlineSeconds")]),
                (Field::Role, vec![format!("{main}/command")]),
            ] {
                add(key(Some(role), &field), &pointers);
            }
        }
        Self(lines)
    }

    /// The lines that the object of a job has.
    pub(crate) fn of_object(object: &Value) -> Self {
        let text = metadata(object, "annotations", LINES).unwrap_or_default();
        Self(serde_json::from_str(text).unwrap_or_default())
    }

    /// The value of the annotation; none if it is too large.
    pub(crate) fn annotation(&self) -> Option<String> {
        serde_json::to_string(&self.0).ok().filter(|text| text.len() <= MAX_BYTES && !self.0.is_empty())
    }

    /// A reason at its line: `job.yaml:11:3: train-0: …`.
    pub(crate) fn show(&self, reason: &Reason) -> String {
        match self.place(reason) {
            // A setting of the target has no line here.
            Some(place) if place.starts_with("the setting") => format!("{} (from {place})", reason.text),
            Some(place) => format!("{place}: {}", reason.text),
            None => reason.text.clone(),
        }
    }

    fn place(&self, reason: &Reason) -> Option<&String> {
        let role = reason.role.as_deref();
        let exact = self.0.get(&key(role, &reason.field));
        // A message about the whole job may name a field that only roles have: the first role with it.
        let end = key(Some(""), &reason.field);
        let of_a_role = || self.0.iter().find(|(key, _)| key.ends_with(&end)).map(|(_, place)| place);
        let wider = || self.0.get(&key(role, &Field::Role)).or_else(|| self.0.get(&key(None, &Field::Role)));
        exact.or_else(|| if role.is_none() { of_a_role() } else { None }).or_else(wider)
    }
}

fn key(role: Option<&str>, field: &Field) -> String {
    let field = match field {
        Field::Image => "image",
        Field::Resource(name) => name,
        Field::Volumes => "volumes",
        Field::Placement => "placement",
        Field::Security => "security",
        Field::Command => "command",
        Field::Queue => "queue",
        Field::Timeout => "timeout",
        Field::Role => "role",
    };
    format!("{}/{field}", role.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn lines() -> Lines {
        let object = json!({
            "metadata": {"name": "x", "labels": {"kueue.x-k8s.io/queue-name": "q"}},
            "spec": {"template": {
                "metadata": {"labels": {"jobc.dev/role": "train"}},
                "spec": {"containers": [{"name": "main", "image": "i", "command": ["a"], "resources": {"limits": {"nvidia.com/gpu": 8}}}]},
            }},
        });
        let part =
            |pointer: &str, line: u32| json!({"pointer": pointer, "file": "job.yaml", "start": [line, 3]});
        let origins = json!([
            part("/metadata/name", 1),
            {"pointer": "/metadata/labels/kueue.x-k8s.io~1queue-name", "target": "/kubernetes/queue"},
            part("/spec/template/spec/containers/0/image", 5),
            part("/spec/template/spec/containers/0/command", 6),
            part("/spec/template/spec/containers/0/resources/limits/nvidia.com~1gpu", 7),
        ]);
        let manifest = Manifest::with_origins("x", object, origins).unwrap();
        // As it comes back from the cluster.
        let text = Lines::of_manifest(&manifest).annotation().unwrap();
        Lines::of_object(&json!({"metadata": {"annotations": {LINES: text}}}))
    }

    #[test]
    fn reasons_are_shown_at_their_lines() {
        let lines = lines();
        let queue = Reason::of_job("r".to_owned(), Field::Queue);
        assert_eq!(lines.show(&queue), "r (from the setting `kubernetes.queue` of the target)");
        let gpu = || Field::Resource("nvidia.com/gpu".to_owned());
        for (role, field, place) in [
            (Some("train"), Field::Image, "job.yaml:5:3: "),
            (Some("train"), gpu(), "job.yaml:7:3: "),
            (None, gpu(), "job.yaml:7:3: "),
            // No line of its own: that of the role, or of the job.
            (Some("train"), Field::Security, "job.yaml:6:3: "),
            (Some("train"), Field::Resource("cpu".to_owned()), "job.yaml:6:3: "),
            (Some("other"), Field::Security, "job.yaml:1:3: "),
            (None, Field::Resource("cpu".to_owned()), "job.yaml:1:3: "),
        ] {
            let reason = Reason { text: "r".to_owned(), role: role.map(str::to_owned), field };
            assert_eq!(lines.show(&reason), format!("{place}r"), "{reason:?}");
        }
        let reason = Reason::of_job("r".to_owned(), Field::Image);
        assert_eq!(Lines::default().show(&reason), "r");
    }
}
