//! The smallest job that requests a capability, so that the result is that of a build of such a job.

use std::sync::LazyLock;

use jobc_compiler::backend::Capability;
use jobc_compiler::built_in_targets::built_in_targets;
use jobc_compiler::why::lines::Lines;
use serde_json::{Value, json};

/// The name of the data of such a job; targets that provide it name it.
pub(super) const DATA: &str = "d";
/// The name of the role that requests it.
pub(super) const ROLE: &str = "a";

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
        "roles": {ROLE: role, "b": role},
    });
    job["roles"][ROLE]["instances"] = json!(2);
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

/// Targets with settings that a plain target lacks, each with the backend that uses them.
pub(super) fn equipped() -> Value {
    let kubernetes = |settings: Value| json!({"backends": ["kubernetes"], "registry": "example.com/team", "kubernetes": settings});
    let slurm = |mut settings: Value| {
        let more = json!({
            "exclusive": true,
            "images": "/images",
            "storage": {DATA: "/data"},
            "gpu_features": {"A100-80GB": "a100"},
            "gpu_types": {"1g.10gb": "1g.10gb"},
        });
        merge(&mut settings, more);
        json!({
            "backends": ["slurm"],
            "gpus": {"driver": "570.0", "cards": [{"model": "A100-80GB", "count": 8}]},
            "slurm": settings,
        })
    };
    let provider = |name: &str| kubernetes(json!({"gpu": {"provider": name}}));
    json!({
        "local": {"backends": ["dockerfile", "oci", "cgroup"], "registry": "example.com/team"},
        "host": {"backends": ["oci"], "gpus": {"cards": [{"model": "A100-80GB", "count": 8}]}},
        "cluster": kubernetes(json!({
            "queue": {"kueue": "q"}, "storage": {DATA: {"pvc": "d"}}, "rdma": "rdma/hca",
            "devices": {"/dev/fuse": "github.com/fuse"}
        })),
        "hami": provider("hami"),
        "mig": provider("nvidia-mig-mixed"),
        "amd": provider("amd"),
        "intel": provider("intel"),
        "gaudi": provider("gaudi"),
        "ascend": provider("ascend"),
        "cambricon": provider("cambricon"),
        "tpu": provider("tpu"),
        "pai": {
            "backends": ["openpai"],
            "registry": "example.com/team",
            "openpai": {
                "storages": [{"name": "s", "provides": DATA}], "roles": {ROLE: {"sku_type": "V100"}}
            },
        },
        "slurm": slurm(json!({"container": "none"})),
        "pyxis": slurm(json!({"container": "pyxis"})),
        "apptainer": slurm(json!({"container": "apptainer"})),
    })
}

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
