//! Input that every runtime accepts and the types reject: unknown capabilities, a process without a user, and two flags of
//! schedulers that the types name otherwise.
//!
//! Both are looked for only in a text that the types have refused, so that a usual one costs nothing.

use oci_spec::runtime::Capability;
use serde::Deserialize as _;
use serde_json::{Value, json};

/// The sets of a process's capabilities.
const SETS: [&str; 5] = ["bounding", "effective", "permitted", "inheritable", "ambient"];

/// Flags of a scheduler as the specification has them, and as the types do.
pub(crate) const SCHEDULER_FLAGS: [(&str, &str); 2] = [
    ("SCHED_FLAG_RESET_ON_FORK", "SCHED_RESET_ON_FORK"),
    ("SCHED_FLAG_DL_OVERRUN", "SCHED_FLAG_D_L_OVERRUN"),
];

/// Completes a `process` that the types refuse. Returns whether anything was changed, and the names of the unknown
/// capabilities, which are left out: the specification asks for a warning (config.md, "Linux Process").
///
/// A missing user is root of the container, as is a missing number of one: runc's and crun's types begin with 0.
pub(crate) fn complete_process(process: &mut Value) -> (bool, Vec<String>) {
    let Some(process) = process.as_object_mut() else { return (false, Vec::new()) };
    let user = process.entry("user").or_insert(Value::Null);
    if user.is_null() {
        *user = json!({});
    }
    let mut changed = false;
    if let Some(user) = user.as_object_mut() {
        for id in ["uid", "gid"] {
            changed |= !user.contains_key(id);
            user.entry(id).or_insert_with(|| json!(0));
        }
    }
    let mut unknown: Vec<String> = Vec::new();
    for set in SETS {
        let names = process.get_mut("capabilities").and_then(|sets| sets.get_mut(set));
        let Some(names) = names.and_then(Value::as_array_mut) else { continue };
        names.retain(|name| match name.as_str() {
            Some(text) if Capability::deserialize(name).is_err() => {
                unknown.push(text.to_owned());
                false
            }
            _ => true,
        });
    }
    changed |= !unknown.is_empty();
    let flags = process.get_mut("scheduler").and_then(|scheduler| scheduler.get_mut("flags"));
    for flag in flags.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some((_, theirs)) = SCHEDULER_FLAGS.iter().find(|(name, _)| flag.as_str() == Some(name)) {
            *flag = json!(theirs);
            changed = true;
        }
    }
    unknown.sort_unstable();
    unknown.dedup();
    (changed, unknown)
}

/// The warning about capabilities that were left out.
pub(crate) fn unknown_capabilities(names: &[String]) -> Option<String> {
    let verb = if names.len() == 1 { "is not a capability" } else { "are not capabilities" };
    (!names.is_empty()).then(|| format!("`{}` {verb} that jobc knows, ignored", names.join("`, `")))
}
