//! The smallest job that requests a capability, so that the result is that of a build of such a job.

use std::sync::LazyLock;

use jobc_compiler::backend::Capability;
use jobc_compiler::built_in_targets::built_in_targets;
use jobc_compiler::why::lines::Lines;
use serde_json::{Value, json};

/// What requests each capability, by the words of [`Capability::TABLE`].
static REQUESTS: LazyLock<Value> = LazyLock::new(|| {
    let lines = Lines::new("minimal_jobs.yaml", include_str!("minimal_jobs.yaml"));
    lines.tree().expect("valid YAML").to_json()
});

/// A job of two roles that requests one feature besides CPUs and memory.
pub(super) fn job(capability: Capability) -> Value {
    let role = json!({"run": ["true"], "resources": {"cpu": 1, "memory": "1GiB"}});
    let mut job = json!({
        "version": 1,
        "name": "example",
        "image": "busybox:1.36",
        "roles": {"a": role, "b": role},
    });
    job["roles"]["a"]["instances"] = json!(2);
    for (_, words) in Capability::TABLE.iter().filter(|(known, _)| *known == capability) {
        merge(&mut job, REQUESTS[words].clone());
    }
    job
}

/// Puts the entries of one map into another; `null` removes.
fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                if value.is_null() {
                    into.remove(&key);
                } else {
                    merge(into.entry(key).or_insert(Value::Null), value);
                }
            }
        }
        (into, from) => *into = from,
    }
}

/// The built-in targets, and a plain one for Slurm, which has none.
pub(super) fn plain() -> Value {
    let mut targets = json!({"slurm": {"backends": ["slurm"], "slurm": {"container": "none"}}});
    for (name, target) in built_in_targets() {
        targets[name] = json!(target);
    }
    targets
}

/// A targets file with settings that a plain target lacks.
pub(super) const EQUIPPED: &str = include_str!("equipped_targets.yaml");

#[cfg(test)]
mod tests {
    use jobc_compiler::backend::capability;

    use super::super::{Selection, plans};
    use super::*;

    #[test]
    fn every_capability_is_requested() {
        for (wanted, words) in Capability::TABLE {
            for ask in [Selection::BuiltIn, Selection::Equipped] {
                let found = plans(&job(*wanted), &ask).map_err(|(_, sink)| sink.finish());
                let jobs = found.unwrap_or_else(|findings| panic!("{words}: {findings:?}"));
                let needed = |job| capability::needs(job).iter().any(|(needed, _)| needed == wanted);
                assert!(jobs.iter().all(needed), "{words} is not asked for");
            }
        }
    }
}
