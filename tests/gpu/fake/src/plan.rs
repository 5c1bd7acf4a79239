//! Plans for tests, from what matters of them.

use jobc_schema::plan::JobPlan;
use serde_json::{Value, json};

/// A plan with what a test gives: keys of the plan, and of each of its roles.
///
/// # Panics
///
/// What is given makes no plan.
pub fn plan(given: &Value) -> JobPlan {
    let mut plan = json!({
        "name": "a",
        "target": {"name": "local", "settings": {"backends": ["oci"]}},
        "images": {"main": {"reference": "host", "source": {"kind": "host"}, "declared_at": "/image"}},
        "stages": [],
        "gang": "auto",
        "network": "host",
        "totals": {"instances": 1, "cpu_millis": 0, "memory_bytes": 0, "gpus": 0, "gpu_slices": 0},
    });
    merge(&mut plan, given);
    for role in plan["roles"].as_array_mut().into_iter().flatten() {
        let mut whole = json!({
            "instances": 1,
            "image": "main",
            "command": {"argv": {"argv": ["true"]}},
            "resources": {},
            "completion": {"min_failed": 1},
            "retry": {"max": 0, "scope": "task"},
            "grace_period_seconds": 30,
            "security": {},
        });
        merge(&mut whole, role);
        *role = whole;
    }
    serde_json::from_value(plan).expect("a plan")
}

fn merge(into: &mut Value, given: &Value) {
    for (key, value) in given.as_object().expect("an object") {
        into[key] = value.clone();
    }
}
