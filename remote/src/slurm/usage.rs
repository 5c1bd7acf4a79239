//! The resource usage of a run's running tasks, measured on their nodes.

use jobc_sys::error::Result;

use super::access::Access;
use super::exec::all_running;
use super::state::Run;
use super::{shell, time};
use crate::place::TaskUsage;

const USAGE: &str = include_str!("usage.sh");

/// Measures the running tasks, by their names.
pub(crate) fn of_run(access: &Access, run: &Run) -> Result<Vec<TaskUsage>> {
    let running = all_running(run);
    if running.is_empty() {
        return Ok(vec![]);
    }
    let pids: Vec<String> = running.iter().map(|task| task.pid.to_string()).collect();
    let words: Vec<&str> = running
        .iter()
        .zip(&pids)
        .flat_map(|(task, pid)| [task.job.as_str(), &task.node, pid, &task.task])
        .collect();
    let text = shell::text(access, "measure the tasks of the job", USAGE, &words)?;
    let now = time::rfc3339(time::now());
    let mut found: Vec<TaskUsage> = text.lines().filter_map(|line| read(line, &now)).collect();
    let position = |usage: &TaskUsage| running.iter().position(|task| task.task == usage.task);
    found.sort_by_key(position);
    Ok(found)
}

/// Reads a line `TASK CPU MEMORY [LIMIT]`.
fn read(line: &str, now: &str) -> Option<TaskUsage> {
    let mut words = line.split_whitespace();
    let task = words.next()?.to_owned();
    Some(TaskUsage {
        task,
        pod: String::new(),
        cpu_millis: words.next()?.parse().ok()?,
        memory_bytes: words.next()?.parse().ok()?,
        cpu_limit_millis: None,
        memory_limit_bytes: words.next().and_then(|limit| limit.parse().ok()),
        gpus: vec![],
        time: now.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_task() {
        let usage = read("train-0 1990 4096 8192", "now").unwrap();
        assert_eq!((usage.task.as_str(), usage.cpu_millis, usage.memory_bytes), ("train-0", 1990, 4096));
        assert_eq!(usage.memory_limit_bytes, Some(8192));
        assert_eq!(read("train-0 1990 4096", "now").unwrap().memory_limit_bytes, None);
        assert!(read("srun: error: x", "now").is_none());
    }
}
