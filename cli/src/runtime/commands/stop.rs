//! `jobc stop`: ends jobs, and waits for their end.

use std::process::ExitCode;

use jobc_compiler::suggest;
use jobc_place::job::JobSummary;
use jobc_place::job_ref::JobRef;
use jobc_place::logs::LogItem;
use jobc_place::stop::StopRequest;
use jobc_sys::id::JobId;

use super::found::{self, NamedJobs, print_done};
use super::job_end_line;
use super::jobs::Result;
use super::newest::{jobs_to_stop, run_to_stop};
use super::sweep::count;
use crate::runtime::args::jobs::StopArgs;
use crate::runtime::kept::KeptOutput;
use crate::runtime::message::container_warning;
use crate::terminal;

pub(crate) fn stop(args: &StopArgs) -> Result<ExitCode> {
    let mut others = Vec::new();
    let words = if args.jobs.is_empty() {
        jobs_to_stop()?
    } else {
        args.jobs.iter().map(|word| running(word, &mut others)).collect::<Result<Vec<_>>>()?
    };
    let found = found::find(&words)?;
    let format = args.output_args.format;
    found::change(
        &found,
        &|one, job| {
            if job.state.is_final() {
                return Ok((format!("{} already", job.state.as_str()), Some(job.clone())));
            }
            let mut kept = one.handle_of(job).as_ref().and_then(KeptOutput::open);
            let mut keep = |item: LogItem<'_>| keep(kept.as_mut(), &one.id_of(job), &item);
            let request = StopRequest { grace: args.grace, no_wait: args.no_wait, keep: Some(&mut keep) };
            let end = one.place.stop(&job.name, request)?;
            kept.iter_mut().for_each(KeptOutput::flush);
            Ok((if args.no_wait { "stopping" } else { "stopped" }.to_owned(), end))
        },
        &|one, done| match &done[..] {
            [(_, Some(end))] if !one.is_sweep() && end.end.is_some() => {
                job_end_line::print(format, &one.id(), end);
            }
            [(what, _)] if !one.is_sweep() => print_done(format, &one.id(), what),
            _ => {
                let word = |(what, end): &(String, Option<JobSummary>)| {
                    end.as_ref().map_or_else(|| what.clone(), |end| end.state.as_str().to_owned())
                };
                let words: Vec<String> = done.iter().map(word).collect();
                print_done(format, &one.id(), &count(words.iter().map(String::as_str)));
            }
        },
    )?;
    note_others(others, &found);
    Ok(ExitCode::SUCCESS)
}

/// Keeps the output of a job whose place is about to delete it.
pub(super) fn keep(kept: Option<&mut KeptOutput>, id: &str, item: &LogItem<'_>) {
    match (item, kept) {
        (LogItem::Line { task, line }, Some(kept)) => kept.add(task, line.attempt, line.time, line.text),
        (LogItem::Remark { text, .. }, _) => {
            terminal::eprint(&container_warning(&format!("the output of `{id}` is not kept: {text}")));
        }
        _ => {}
    }
}

/// The job or sweep to stop of a word: of a name on this host the newest run that has not ended. `others` gets the other
/// runs of that name that have not ended.
fn running(word: &JobRef, others: &mut Vec<JobId>) -> Result<JobRef> {
    let JobRef::Local(name) = word else { return Ok(word.clone()) };
    if name.parse::<JobId>().is_ok() {
        return Ok(word.clone());
    }
    match run_to_stop(name)? {
        Some((newest, more)) => {
            others.extend(more);
            Ok(JobRef::Local(newest.to_string()))
        }
        None => Ok(word.clone()),
    }
}

/// Names the jobs of the same names that still run.
fn note_others(mut others: Vec<JobId>, stopped: &[NamedJobs]) {
    others.retain(|id| stopped.iter().all(|one| one.id() != id.to_string()));
    let ids: Vec<String> = others.iter().map(JobId::to_string).collect();
    let (run, object) = match &ids[..] {
        [] => return,
        [_] => ("runs", "it"),
        _ => ("run", "them"),
    };
    let known = suggest::list(ids.iter().map(String::as_str));
    terminal::eprint(&format!("jobc: {known} still {run}; `jobc stop {}` stops {object}\n", ids.join(" ")));
}
