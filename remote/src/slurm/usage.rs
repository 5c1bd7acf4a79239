//! The resource usage of a run's running tasks, measured on their nodes.

use jobc_sys::error::Result;

use super::access::Access;
use super::exec::all_running;
use super::login::Measure;
use super::state::Run;
use super::time;
use jobc_place::time::Time;

use crate::place::{TaskState, TaskUsage};

/// Measures the running tasks, by their names.
pub(crate) fn of_run(access: &Access, run: &Run) -> Result<Vec<TaskUsage>> {
    let running = all_running(run);
    if running.is_empty() {
        return Ok(vec![]);
    }
    let program = access.node_program()?;
    let question = || Measure {
        program: program.clone(),
        tasks: running
            .iter()
            .map(|task| [&task.job, &task.node, &task.process, &task.task].map(Clone::clone))
            .collect(),
    };
    let lines = access.ask_with_program("measure the tasks of the job", question)?;
    let now = time::moment(time::now());
    let mut found: Vec<TaskUsage> = lines.iter().filter_map(|line| read(line, now)).collect();
    let position = |usage: &TaskUsage| running.iter().position(|task| task.task == usage.task.to_string());
    found.sort_by_key(position);
    Ok(found)
}

/// Reads a line `TASK CPU MEMORY [LIMIT]`.
fn read(line: &str, now: Time) -> Option<TaskUsage> {
    let mut words = line.split_whitespace();
    let task = words.next()?.parse().ok()?;
    Some(TaskUsage {
        cpu_millis: Some(words.next()?.parse().ok()?),
        memory: Some(words.next()?.parse().ok()?),
        memory_limit: words.next().and_then(|limit| limit.parse().ok()),
        ..TaskUsage::new(now, task, 1, TaskState::Running)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_task() {
        let read = |line| read(line, Time::default());
        let usage = read("train-0 1990 4096 8192").unwrap();
        assert_eq!(usage.task.to_string(), "train-0");
        assert_eq!(
            (usage.cpu_millis, usage.memory, usage.memory_limit),
            (Some(1990), Some(4096), Some(8192))
        );
        assert_eq!(read("train-0 1990 4096").unwrap().memory_limit, None);
        assert!(read("srun: error: x").is_none());
    }
}
