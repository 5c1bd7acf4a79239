//! `jobc logs`: prints the output of tasks, at any place.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

use jobc_job::logs::{LineFilter, Reader};
use jobc_place::job::JobSummary;
use jobc_place::job_ref::Handle;
use jobc_place::logs::{LogItem, LogRequest};
use jobc_place::task::TaskStatus;
use jobc_sys::error::Kind;

use super::follow::printer::LineFormat;
use super::found::NamedJobs;
use super::jobs::{Failure, Result};
use super::newest;
use super::task_lines::{JobLines, TaskLines};
use crate::args::FormatArg;
use crate::runtime::args::watch::LogsArgs;
use crate::runtime::kept::{self, KeptOutput};
use crate::runtime::message::container_warning;
use crate::terminal;

pub(crate) fn run(args: &LogsArgs) -> Result<ExitCode> {
    let (found, words, answers) = match named(&args.words) {
        Ok(found) => found,
        Err(error) => return gone(args, error),
    };
    if words.len() == args.words.len() {
        let state = found.members.jobs().first().map_or("", |job| job.state.as_str());
        newest::show_choice(&found.id(), if found.is_sweep() { "a sweep" } else { state });
    }
    let jobs = found.members.jobs();
    let request = LogRequest {
        follow: args.follow,
        tail: args.tail,
        since: args.since.map(|time| time.to_string()),
        attempt: args.attempt,
        tasks: words.to_vec(),
        is_search: false,
    };
    // A place that did not answer is not asked again.
    let of_job = |job: &JobSummary| if answers { tasks(&found, job, &request.tasks) } else { vec![] };
    let known: Vec<Vec<(usize, String)>> = jobs.iter().map(of_job).collect();
    let is_one = matches!(&known[..], [tasks] if tasks.len() == 1);
    let lines = JobLines::new(format(args, !is_one), found.is_sweep());
    let shown: Vec<(&JobSummary, TaskLines<'_>)> = jobs
        .iter()
        .zip(known)
        .map(|(job, tasks)| (job, lines.of_job(&found.id_of(job), tasks.into_iter())))
        .collect();
    // The jobs of a sweep end in any order: all that run are followed at the same time.
    let (running, ended): (Vec<_>, Vec<_>) =
        shown.into_iter().partition(|(job, _)| args.follow && jobs.len() > 1 && !job.state.is_final());
    for (job, lines) in ended {
        show(args, &found, job, &request, lines)?;
    }
    let mut results = vec![];
    std::thread::scope(|scope| {
        let followed: Vec<_> = running
            .into_iter()
            .map(|(job, lines)| {
                let (found, request) = (&found, &request);
                scope.spawn(move || show(args, found, job, request, lines))
            })
            .collect();
        results.extend(followed.into_iter().filter_map(|thread| thread.join().ok()));
    });
    results.into_iter().collect::<Result<Vec<()>>>()?;
    lines.finish();
    Ok(ExitCode::SUCCESS)
}

/// The job or sweep, the tasks, and whether its place answers.
fn named(words: &[String]) -> Result<(NamedJobs, &[String], bool)> {
    let found = newest::named_with_tasks(words);
    let handle = words.first().and_then(|word| word.parse::<Handle>().ok());
    match (found, handle) {
        // Slurm's files can be read while Slurm itself does not answer.
        (Err(error), Some(handle)) if !error.is_about_the_job() => {
            Ok((NamedJobs::assumed(&handle)?, &words[1..], false))
        }
        (found, _) => found.map(|(found, words)| (found, words, true)),
    }
}

fn format(args: &LogsArgs, prefix: bool) -> LineFormat {
    LineFormat { prefix, timestamps: args.timestamps, json: args.lines.format == FormatArg::Json }
}

/// The tasks of a job that are shown, with their places in it; none if they are not known.
fn tasks(found: &NamedJobs, job: &JobSummary, words: &[String]) -> Vec<(usize, String)> {
    let detail = found.place.inspect(&job.name);
    let Ok(detail) = detail else { return vec![] };
    let is_chosen = |(_, task): &(usize, &TaskStatus)| {
        let role = detail.combinations.get(&task.task.role).map_or(&task.task.role, |known| &known.role);
        let names = [role.clone(), task.task.role.clone(), task.task.to_string()];
        words.is_empty() || words.iter().any(|word| names.contains(word))
    };
    let tasks = detail.tasks.iter().enumerate().filter(is_chosen);
    tasks.map(|(place, task)| (place, task.task.to_string())).collect()
}

fn show(
    args: &LogsArgs,
    found: &NamedJobs,
    job: &JobSummary,
    request: &LogRequest,
    mut lines: TaskLines<'_>,
) -> Result<()> {
    let handle = found.handle_of(job);
    // Only output from the beginning can be kept without gaps.
    if request.tail.is_none() && request.since.is_none() {
        lines.keep(handle.as_ref().and_then(KeptOutput::open));
    }
    let read = found.place.logs(&job.name, request, &mut |item| {
        lines.show(&item);
        ControlFlow::Continue(())
    });
    let is_gone = read.as_ref().map_or_else(|error| error.kind == Kind::NotFound, |()| !lines.has_shown());
    let is_kept =
        is_gone && handle.is_some_and(|handle| show_kept(&handle, args, &request.tasks, &mut lines));
    lines.finish();
    if is_kept { Ok(()) } else { read.map_err(Failure::from) }
}

/// Shows what is kept of a job that its place does not know any more; otherwise the error.
fn gone(args: &LogsArgs, error: super::jobs::Failure) -> Result<ExitCode> {
    let Some((Ok(handle), words)) =
        args.words.split_first().map(|(word, rest)| (word.parse::<Handle>(), rest))
    else {
        return Err(error);
    };
    let all = JobLines::new(format(args, true), false);
    let mut lines = all.of_job(&handle.to_string(), std::iter::empty());
    if !show_kept(&handle, args, words, &mut lines) {
        return Err(error);
    }
    all.finish();
    Ok(ExitCode::SUCCESS)
}

/// Shows the output that was kept on this host of a job that the place has no output of. Returns whether there is some.
fn show_kept(run: &Handle, args: &LogsArgs, words: &[String], lines: &mut TaskLines<'_>) -> bool {
    let is_chosen = |task: &str| {
        let role = task.rsplit_once('-').map_or(task, |(role, _)| role);
        words.is_empty() || words.iter().any(|word| word == task || word == role)
    };
    let (tasks, directories): (Vec<String>, Vec<PathBuf>) =
        kept::logs(run).into_iter().filter(|(task, _)| is_chosen(task)).unzip();
    if tasks.is_empty() {
        return false;
    }
    lines.keep(None);
    let text = format!("`{}` has no output of `{run}` any more; this was kept on this host", run.target);
    terminal::eprint(&container_warning(&text));
    let choice = LineFilter::default().tail(args.tail).since(args.since).attempt(args.attempt);
    let mut reader = Reader::new(directories, choice);
    while reader
        .read(&mut |number, line| {
            lines.show(&LogItem::Line { task: &tasks[number], line: *line });
            Ok(())
        })
        .unwrap_or(false)
    {}
    true
}
