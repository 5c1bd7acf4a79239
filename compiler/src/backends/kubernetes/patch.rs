//! The target's patches on the finished objects: JSON merge patches (RFC 7396) and JSON Patches (RFC 6902).

mod operations;

use jobc_schema::Pointer;
use jobc_schema::plan::JobPlan;
use serde_json::{Map, Value};

use crate::backend::{FilePart, Origin, PartSource};
use crate::diagnostic::{Diagnostic, Location, Sink, codes};

use super::object::Object;
use super::settings::{setting_at, settings};

/// Applies the target's patches; a patch that matches no object is an error, because it was meant to change something.
pub(super) fn apply(job: &JobPlan, objects: &mut [Object], sink: &mut Sink) {
    for (number, patch) in settings(job).patches.iter().enumerate() {
        let mut matched = false;
        let patch_at = Pointer::ROOT.keys(["kubernetes", "patches"]).index(number);
        let below = patch_at.key("patch");
        if patch.patch.is_none() && patch.operations.is_empty() {
            sink.push(empty(job, number));
        }
        let fits =
            |o: &&mut Object| o.kind == patch.kind && patch.name.as_ref().is_none_or(|name| *name == o.name);
        for object in objects.iter_mut().filter(fits) {
            matched = true;
            if let Some(patch) = &patch.patch {
                merge(&mut object.value, patch);
                note(patch, &Pointer::ROOT, &below, &mut object.origins);
            }
            match operations::apply(&mut object.value, &patch.operations) {
                Ok(changed) => {
                    let from = patch_at.key("operations");
                    for at in &changed {
                        note_part(at, &from, &mut object.origins);
                    }
                }
                Err((operation, why)) => sink.push(unfit(job, object, (number, operation), &why)),
            }
        }
        if !matched {
            sink.push(no_match(job, objects, number));
        }
    }
}

fn no_match(job: &JobPlan, objects: &[Object], number: usize) -> Diagnostic {
    let patch = &settings(job).patches[number];
    let named = patch.name.as_ref().map_or(String::new(), |name| format!(" named `{name}`"));
    let mut known: Vec<String> = objects.iter().take(8).map(|o| format!("{} `{}`", o.kind, o.name)).collect();
    if objects.len() > known.len() {
        known.push("…".to_owned());
    }
    Diagnostic::error(
        codes::KUBERNETES_SETTING,
        format!(
            "patch {number} of target `{}` matches no object of kind `{}`{named}",
            job.target.name, patch.kind
        ),
    )
    .at_place(Location::target(&setting_at(job, ["patches"]).index(number)), "")
    .note(format!("job `{}` becomes {}", job.name, known.join(", ")))
}

fn empty(job: &JobPlan, number: usize) -> Diagnostic {
    let target = &job.target.name;
    Diagnostic::error(
        codes::KUBERNETES_SETTING,
        format!("patch {number} of target `{target}` changes nothing"),
    )
    .at_place(Location::target(&setting_at(job, ["patches"]).index(number)), "")
    .note("write `patch`, a JSON merge patch, or `operations`, a JSON Patch")
}

/// An operation that matches nothing in an object.
fn unfit(job: &JobPlan, object: &Object, (number, operation): (usize, usize), why: &str) -> Diagnostic {
    let (target, kind, name) = (&job.target.name, &object.kind, &object.name);
    Diagnostic::error(
        codes::KUBERNETES_SETTING,
        format!(
            "operation {operation} of patch {number} of target `{target}` cannot be applied to {kind} `{name}`: {why}"
        ),
    )
    .at_place(
        Location::target(&setting_at(job, ["patches"]).index(number).key("operations").index(operation)),
        "",
    )
}

/// RFC 7396, section 2.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(target) = target else { return };
    for (key, value) in patch {
        if value.is_null() {
            target.shift_remove(key);
        } else {
            merge(target.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

/// Notes for each changed part that it comes from the patch, instead of what it came from before.
fn note(patch: &Value, at: &Pointer, from: &Pointer, origins: &mut Vec<Origin>) {
    if let Value::Object(map) = patch
        && !map.is_empty()
    {
        for (key, value) in map {
            note(value, &at.key(key), &from.key(key), origins);
        }
        return;
    }
    note_part(at, from, origins);
}

/// Notes that a part comes from a place of the target, instead of what it came from before.
fn note_part(at: &Pointer, from: &Pointer, origins: &mut Vec<Origin>) {
    let part = FilePart::Pointer(at.clone());
    origins.retain(|origin| origin.part != part);
    origins.push(Origin { part, from: PartSource::Target(from.clone()) });
}

#[cfg(test)]
mod tests {
    use super::merge;
    use serde_json::{Value, json};

    #[test]
    fn a_patch_merges() {
        // Cases of RFC 7396, appendix A.
        let check = |mut target: Value, patch: Value, expected: Value| {
            merge(&mut target, &patch);
            assert_eq!(target, expected, "{patch}");
        };
        check(json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"}));
        check(json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"}));
        check(json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"}));
        check(json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}}));
        check(json!({"a": "foo"}), json!("bar"), json!("bar"));
        check(json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"}));
        check(json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}}));
    }
}
