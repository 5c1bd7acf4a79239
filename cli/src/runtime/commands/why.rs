//! `jobc why JOB`: why a job ended, or what it waits for, at any place.

use std::process::ExitCode;

use camino::Utf8Path;
use jobc_place::job_ref::JobRef;

use super::found::{NamedJobs, Places};
use super::jobs::{Result, into_exit_code};
use crate::table::escape_control;
use crate::terminal;

/// Prints the state of the jobs that a word names, and the reasons; none if the word names no job.
pub(crate) fn why(word: &str) -> Option<ExitCode> {
    let job: JobRef = word.parse().ok()?;
    let is_remote = matches!(job, JobRef::Remote(_));
    // A file without its line is meant, not a job at a target.
    if is_remote && Utf8Path::new(word).extension().is_some_and(|extension| extension == "yaml") {
        return None;
    }
    match Places::default().find(&job) {
        Ok(found) => Some(into_exit_code(print(&found))),
        // The error of a target says more than `no such file or directory`.
        Err(error) => is_remote.then(|| into_exit_code(Err(error))),
    }
}

fn print(found: &NamedJobs) -> Result<ExitCode> {
    let mut text = String::new();
    for job in found.members.jobs() {
        let id = found.id_of(job);
        let end = job.end_text();
        let reasons = found.place.reasons(&job.name)?;
        for line in std::iter::once(&end).chain(reasons.iter().filter(|reason| **reason != end)) {
            text += &format!("{id}: {}\n", escape_control(line));
        }
    }
    terminal::print(&text);
    Ok(ExitCode::SUCCESS)
}
