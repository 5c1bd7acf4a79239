//! Pass 4: lints, which need the whole picture. One file each; each has a code, a page and a case.
//!
//! A finding is an error only if the job cannot work; a probable mistake is a warning, useful information is a note. A
//! good job has no findings, and `x-jobc-allow: [J0311]` at the top of the job file silences what a user has reviewed
//! and wants to keep.

mod allow;
mod command;
mod document;
mod endless;
mod gpu;
mod lints;
pub mod signature;
mod view;

use jobc_schema::Job;
use jobc_schema::plan::JobPlan;

use crate::diagnostic::Sink;
use crate::document::Document;
use crate::files::Files;

pub use allow::allowed;

/// Checks one resolved job: one target, one combination of the matrix. `files` are those beside the job file.
///
/// Findings that the next target or combination repeats word for word are dropped when the sink is finished.
pub fn check(job: &Job, plan: &JobPlan, files: &dyn Files, sink: &mut Sink) {
    let view = view::View::new(job, plan, files);
    for lint in lints::TABLE {
        lint(&view, sink);
    }
}

/// Checks the job file as written, with templates but before expressions: unused declarations, axes used as variables,
/// files that several tasks write, values that look like secrets, and unknown codes in `x-jobc-allow`. `files` are those beside the job
/// file. Runs once per job file, regardless of targets.
pub fn check_document(document: &Document, files: &dyn Files, sink: &mut Sink) {
    allow::check(document, sink);
    document::unused::check(document, files, sink);
    document::axes::check(document, sink);
    document::same_file::check(document, sink);
    document::secret::check(document, sink);
}

#[cfg(test)]
mod tests;
