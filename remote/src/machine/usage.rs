//! The resource usage of tasks, as printed by `jobc stats`.

use serde::Deserialize;

use crate::place::{GpuUsage, TaskUsage};

#[derive(Deserialize)]
struct Sample {
    task: String,
    time: String,
    #[serde(default)]
    cpu_millis: u64,
    #[serde(default)]
    memory: u64,
    #[serde(default)]
    cpu_limit_millis: Option<u64>,
    #[serde(default)]
    memory_limit: Option<u64>,
    #[serde(default)]
    gpu: Vec<Gpu>,
}

#[derive(Deserialize)]
struct Gpu {
    #[serde(default)]
    memory: Option<u64>,
    #[serde(default)]
    utilization: Option<u8>,
}

/// Reads a line; none for one that is about no task.
pub(super) fn read(line: &str) -> Option<TaskUsage> {
    let sample: Sample = serde_json::from_str(line).ok()?;
    Some(TaskUsage {
        task: sample.task,
        pod: String::new(),
        cpu_millis: sample.cpu_millis,
        memory_bytes: sample.memory,
        cpu_limit_millis: sample.cpu_limit_millis,
        memory_limit_bytes: sample.memory_limit,
        gpus: sample
            .gpu
            .into_iter()
            .map(|gpu| GpuUsage { utilization: gpu.utilization, memory_bytes: gpu.memory })
            .collect(),
        time: sample.time,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_belongs_to_a_task() {
        let line = r#"{"job":"a.1","time":"2026","task":"main-0","memory":5,"cpu_millis":7,"memory_limit":9,"gpu":[{"gpu":"GPU-1","memory":3,"utilization":97}]}"#;
        let usage = read(line).unwrap();
        assert_eq!((usage.cpu_millis, usage.memory_bytes, usage.memory_limit_bytes), (7, 5, Some(9)));
        assert_eq!(usage.gpus, [GpuUsage { utilization: Some(97), memory_bytes: Some(3) }]);
        assert_eq!(read(r#"{"job":"a.1","state":"running"}"#), None);
    }
}
