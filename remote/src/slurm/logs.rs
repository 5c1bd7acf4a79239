//! The output of the tasks of a run.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use jobc_place::logs::parse_line;
use jobc_sys::error::{Error, Kind, Result};

use super::access::Access;
use super::cluster::Cluster;
use super::output::{Output, task_of, task_of_record};
use super::state::Run;
use super::time;
use crate::place::{LogItem, LogOutput, LogRequest};

/// How often new output is looked for.
const INTERVAL: Duration = Duration::from_millis(500);
/// How often Slurm is asked whether the job still runs.
const QUEUE_INTERVAL: Duration = Duration::from_secs(10);

/// Passes the output of tasks on until all of it was shown, or the job has ended.
pub(crate) fn logs(
    cluster: &Cluster,
    access: &Access,
    run: &Run,
    request: &LogRequest,
    output: LogOutput<'_>,
) -> Result<()> {
    request.since.as_deref().map(time::parse).transpose()?;
    check_tasks(run, &request.tasks)?;
    let mut reader = Output::default();
    let mut flow = ControlFlow::Continue(());
    let mut show = |file: &str, text: &[u8]| {
        if flow.is_continue() {
            flow = show_line(request, file, text, output);
        }
        flow
    };
    let mut run = run.clone();
    let mut asked = Instant::now();
    loop {
        // All output before the end of the job is available when the end is recorded.
        let has_ended = run.state().is_final();
        let mut broke = ControlFlow::Continue(());
        let (files, has_new) =
            reader.poll(access, &run.name, request.tail, &mut |file, text| broke = show(file, text))?;
        if broke.is_break() {
            return Ok(());
        }
        if !has_new && (has_ended || !request.follow) {
            reader.finish(&mut |file, text| broke = show(file, text));
            return Ok(());
        }
        if has_new {
            continue;
        }
        if show("", b"").is_break() {
            return Ok(());
        }
        std::thread::sleep(INTERVAL);
        if asked.elapsed() >= QUEUE_INTERVAL {
            asked = Instant::now();
            run = cluster.run(&run.name)?;
        } else {
            run.update(files);
        }
    }
}

/// Shows a line; an empty file name means that nothing happened for a while.
fn show_line(request: &LogRequest, file: &str, text: &[u8], output: LogOutput<'_>) -> ControlFlow<()> {
    if file.is_empty() {
        return output(LogItem::Idle);
    }
    if let Some(task) = task_of_record(file) {
        let Some(line) = parse_line(text) else { return ControlFlow::Continue(()) };
        let is_attempt = request.attempt.is_none_or(|wanted| wanted == line.attempt);
        let is_new = request.since.as_deref().is_none_or(|since| line.time > since);
        return if is_attempt && is_new && is_wanted(request, task) {
            output(LogItem::Line { task, line })
        } else {
            ControlFlow::Continue(())
        };
    }
    let Some((task, attempt)) = task_of(file) else {
        let group = file.trim_start_matches("out/").trim_end_matches(".log");
        let remark = remark(text).filter(|_| request.tasks.is_empty() && request.attempt.is_none());
        return remark
            .map_or(ControlFlow::Continue(()), |text| output(LogItem::Remark { task: group, text: &text }));
    };
    let is_attempt = request.attempt.is_none_or(|wanted| wanted == attempt);
    if is_attempt && is_wanted(request, task) {
        return output(LogItem::line(task, attempt, "", text));
    }
    ControlFlow::Continue(())
}

/// Messages of a batch script, or of Slurm in its output, about the job; `srun` repeats those of tasks.
fn remark(line: &[u8]) -> Option<String> {
    let line = String::from_utf8_lossy(line);
    let own = line.strip_prefix("jobc: ");
    let of_slurm = line.strip_prefix("slurmstepd: error: ").filter(|rest| rest.starts_with("*** JOB"));
    own.or(of_slurm).map(str::to_owned)
}

/// Whether the output of a task is shown.
fn is_wanted(request: &LogRequest, task: &str) -> bool {
    request.tasks.is_empty() || request.tasks.iter().any(|word| is_named(task, word))
}

/// Whether a name is that of the task or of its role.
fn is_named(task: &str, word: &str) -> bool {
    task == word || task.rsplit_once('-').is_some_and(|(role, _)| role == word)
}

/// Every word must name a task or a role.
fn check_tasks(run: &Run, words: &[String]) -> Result<()> {
    for word in words {
        let roles = || run.record.groups.iter().flat_map(|group| &group.roles);
        let is_known = |(role, count): &(String, u32)| {
            role == word || (0..*count).any(|index| *word == format!("{role}-{index}"))
        };
        if !roles().any(is_known) {
            let names: Vec<String> = roles().map(|(role, _)| format!("`{role}`")).collect();
            let first = roles().next().map(|(role, _)| role.as_str()).unwrap_or_default();
            return Err(Error::new(Kind::NotFound, format!("the job has no task `{word}`"))
                .help(format!("name a role, {}, or a task of it, such as `{first}-0`", names.join(" or "))));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_scripts_and_slurm_are_recognized() {
        for (line, text) in [
            (
                "jobc: role main failed: instance 1 ended with exit code 7",
                Some("role main failed: instance 1 ended with exit code 7"),
            ),
            (
                "slurmstepd: error: *** JOB 4 ON n0 CANCELLED AT 2026 ***",
                Some("*** JOB 4 ON n0 CANCELLED AT 2026 ***"),
            ),
            ("srun: error: n0: task 0: Exited with exit code 7", None),
        ] {
            assert_eq!(remark(line.as_bytes()).as_deref(), text);
        }
    }

    #[test]
    fn words_name_tasks_or_roles() {
        assert!(is_named("train-m1-0", "train-m1") && is_named("train-0", "train-0"));
        assert!(!is_named("train-0", "train-1") && !is_named("train-10", "train-1"));
    }
}
