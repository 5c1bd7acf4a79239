//! What a place keeps of the plan of a job: the values of its combination, and the metrics of its roles.
//!
//! It is text of JSON beside the job, an annotation on Kubernetes, so that any host can compare the jobs of a sweep.

use jobc_schema::plan::JobPlan;

use crate::job::JobSummary;

/// The longest text; a job may have thousands of roles.
const MAX_BYTES: usize = 16 << 10;

/// The text for a job; none if reports need nothing of its plan, or too much.
pub fn of(plan: &JobPlan) -> Option<String> {
    let has_metrics = plan.roles.iter().any(|role| !role.metrics.is_empty());
    if plan.matrix.is_empty() && !has_metrics {
        return None;
    }
    serde_json::to_string(&plan.outline()).ok().filter(|text| text.len() <= MAX_BYTES)
}

/// The outline of a job; none if the place keeps none, or one that another release of jobc wrote.
pub fn read(job: &JobSummary) -> Option<JobPlan> {
    serde_json::from_str(job.outline.as_deref()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_outline_has_the_combination_and_the_metrics_alone() {
        let role = json!({
            "name": "main", "instances": 2, "image": "main", "env": {"TOKEN": "text"}, "resources": {}, "completion": {},
            "command": {"script": {"shell": ["sh"], "script": "x".repeat(20_000)}}, "retry": {"max": 0, "scope": "task"},
            "grace_period_seconds": 30, "security": {},
            "metrics": {"loss": {"source": {"log": "loss=([0-9.]+)"}, "better": "lower"}},
        });
        let mut plan: JobPlan = serde_json::from_value(json!({
            "name": "grid-1", "matrix": {"lr": 0.1}, "target": {"name": "lab", "settings": {"backends": []}}, "images": {}, "roles": [role],
            "stages": [["main"]], "gang": "auto", "network": "job",
            "totals": {"instances": 2, "cpu_millis": 0, "memory_bytes": 0, "gpus": 0, "gpu_slices": 0},
        }))
        .unwrap();
        let text = of(&plan).unwrap();
        assert!(
            text.contains("loss=([0-9.]+)") && text.contains(r#""lr":0.1"#) && !text.contains("TOKEN"),
            "{text}"
        );
        assert!(text.len() < 1000, "{text}");
        let back: JobPlan = serde_json::from_str(&text).unwrap();
        assert_eq!(back, plan.outline());
        plan.matrix.clear();
        plan.roles[0].metrics.clear();
        assert_eq!(of(&plan), None, "nothing to compare");
    }
}
