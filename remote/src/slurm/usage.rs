//! The resource usage of a run's running tasks, measured on their nodes.

use jobc_sys::error::Result;

use super::access::Access;
use super::exec::all_running;
use super::login::Measure;
use super::state::Run;
use super::time;
use jobc_place::time::Time;
use jobc_place::usage::GpuUse;

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

/// Reads a line `TASK CPU MEMORY LIMIT GPU...`.
fn read(line: &str, now: Time) -> Option<TaskUsage> {
    let mut words = line.split_whitespace();
    let task = words.next()?.parse().ok()?;
    let gpu = |word: &str| {
        let mut parts = word.split(',');
        Some(GpuUse {
            gpu: parts.next()?.to_owned(),
            utilization: parts.next()?.parse().ok(),
            memory: parts.next()?.parse().ok(),
            ..GpuUse::default()
        })
    };
    Some(TaskUsage {
        cpu_millis: Some(words.next()?.parse().ok()?),
        memory: Some(words.next()?.parse().ok()?),
        memory_limit: words.next().and_then(|limit| limit.parse().ok()),
        gpu: words.filter_map(gpu).collect(),
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
        let usage = read("train-0 1990 4096 - GPU-1,97,1073741824 GPU-2,[N/A],-").unwrap();
        let gpus: Vec<_> =
            usage.gpu.iter().map(|gpu| (gpu.gpu.as_str(), gpu.utilization, gpu.memory)).collect();
        assert_eq!(gpus, [("GPU-1", Some(97), Some(1 << 30)), ("GPU-2", None, None)]);
        assert!(read("srun: error: x").is_none());
    }
}
