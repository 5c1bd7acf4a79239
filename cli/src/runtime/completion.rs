//! Completions of values that only this host knows: its images, jobs, tasks and signals.

mod images;
pub(crate) mod jobs;
mod tasks;

use clap_complete::engine::ArgValueCandidates;

pub(crate) use images::images;
pub(crate) use tasks::{roles, tasks_of_file};

/// The signals that have names.
pub(crate) fn signals() -> ArgValueCandidates {
    ArgValueCandidates::new(|| jobc_schema::signal::names().map(Into::into).collect())
}
