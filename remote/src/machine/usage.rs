//! The resource usage of tasks, as printed by `jobc stats`.

use crate::place::TaskUsage;

/// Reads a line; none for one that is about no task.
pub(super) fn read(line: &str) -> Option<TaskUsage> {
    let mut usage: TaskUsage = serde_json::from_str(line).ok()?;
    // The name that the job has there.
    usage.more.remove("job");
    Some(usage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_belongs_to_a_task() {
        let line = r#"{"job":"a.1","time":"2026-01-01T00:00:00.000Z","task":"main-0","attempt":1,"state":"running","memory":5,"cpu_millis":7,"memory_limit":9,"gpu":[{"gpu":"GPU-1","memory":3,"utilization":97}]}"#;
        let usage = read(line).unwrap();
        assert_eq!((usage.cpu_millis, usage.memory, usage.memory_limit), (Some(7), Some(5), Some(9)));
        assert_eq!((usage.gpu[0].utilization, usage.gpu[0].memory), (Some(97), Some(3)));
        assert_eq!(read(r#"{"job":"a.1","state":"running"}"#), None);
    }
}
