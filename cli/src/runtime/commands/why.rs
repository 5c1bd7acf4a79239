//! `jobc why JOB`: why a job ended, or what it waits for, at any place, and how that changed.

mod line;
mod quiet;

use std::process::ExitCode;

use camino::Utf8Path;
use jobc_place::change::Change;
use jobc_place::job::JobSummary;
use jobc_place::job_ref::{Handle, JobRef};
use jobc_place::output::WhyJob;

use super::found::{NamedJobs, Places};
use super::jobs::{Result, into_exit_code};
use crate::args::FormatArg;
use crate::runtime::kept;
use crate::runtime::local_time::Zone;
use crate::table::escape_control;
use crate::terminal;

/// The answer about a job.
struct Why {
    id: String,
    job: JobSummary,
    /// The state, or how it ended.
    end: String,
    reasons: Vec<String>,
    estimate: Option<String>,
    changes: Vec<Change>,
}

/// Prints the state of the jobs that a word names, and the reasons; none if the word names no job.
pub(crate) fn why(word: &str, format: FormatArg) -> Option<ExitCode> {
    let job: JobRef = word.parse().ok()?;
    let handle = if let JobRef::Remote(handle) = &job { Some(handle) } else { None };
    // A file without its line is meant, not a job at a target.
    if handle.is_some() && Utf8Path::new(word).extension().is_some_and(|extension| extension == "yaml") {
        return None;
    }
    match Places::default().find(&job) {
        Ok(found) => Some(into_exit_code(print(&found, format))),
        // The error of a target says more than `no such file or directory`.
        Err(error) => handle.map(|handle| {
            let code = into_exit_code(Err(error));
            terminal::print(&time_line_of_gone(handle));
            code
        }),
    }
}

/// What was seen of a job that its cluster has removed from its list.
fn time_line_of_gone(handle: &Handle) -> String {
    let changes = kept::changes(handle);
    if changes.is_empty() {
        return String::new();
    }
    format!("{handle}: what commands of this user have seen of it:\n{}", time_line(&changes, &Zone::local()))
}

fn print(found: &NamedJobs, format: FormatArg) -> Result<ExitCode> {
    let zone = Zone::local();
    let mut text = String::new();
    for job in found.members.jobs() {
        let why = answer(found, job)?;
        text += &if format == FormatArg::Json { json(&why) } else { shown(&why, found.is_sweep(), &zone) };
    }
    terminal::print(&text);
    Ok(ExitCode::SUCCESS)
}

fn answer(found: &NamedJobs, job: &JobSummary) -> Result<Why> {
    let end = job.end_text();
    let mut reasons = found.place.reasons(&job.name)?;
    let changes = match found.handle_of(job) {
        Some(handle) => {
            kept::note_reasons(&handle, job, &reasons);
            kept::changes(&handle)
        }
        None => found.place.changes(&job.name)?,
    };
    reasons.retain(|reason| *reason != end);
    if !found.is_elsewhere() {
        reasons = line::located(job, reasons);
    }
    let end = if found.is_elsewhere() { end } else { line::located(job, vec![end]).concat() };
    reasons.extend(quiet::reasons(found.place.as_ref(), job));
    let is_waiting = job.state.is_waiting();
    let estimate = if is_waiting { found.place.estimate(&job.name)? } else { None };
    Ok(Why { id: found.id_of(job), job: job.clone(), end, reasons, estimate, changes })
}

fn json(why: &Why) -> String {
    let line = WhyJob::new((&why.id, &why.job), &why.reasons, why.estimate.as_deref(), &why.changes);
    format!("{}\n", serde_json::json!(line))
}

/// The state, the reasons and the estimate, and, where the reason has changed, the time line.
fn shown(why: &Why, is_sweep: bool, zone: &Zone) -> String {
    let lines = std::iter::once(&why.end).chain(&why.reasons).chain(&why.estimate);
    let mut text: String = lines.map(|line| format!("{}: {}\n", why.id, escape_control(line))).collect();
    if why.changes.len() > 1 && !is_sweep {
        text += &time_line(&why.changes, zone);
    }
    text
}

fn time_line(changes: &[Change], zone: &Zone) -> String {
    let line = |change: &Change| {
        format!("  {}  {}\n", zone.date_and_time(change.time), escape_control(&change.text))
    };
    changes.iter().map(line).collect()
}
