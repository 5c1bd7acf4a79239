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

pub use allow::allowed;

/// Looks at one decided job: one target, one combination of the matrix.
///
/// Findings that the next target or combination repeats word for word are dropped when the sink is finished.
pub fn check(job: &Job, plan: &JobPlan, sink: &mut Sink) {
    let view = view::View::new(job, plan);
    for lint in lints::TABLE {
        lint(&view, sink);
    }
}

/// Looks at the job file as it was written, templates put in and expressions not yet: what is declared and never used,
/// what looks like a secret, and unknown codes in `x-jobc-allow`. Once per job file, regardless of targets.
pub fn check_document(document: &Document, sink: &mut Sink) {
    allow::check(document, sink);
    document::unused::check(document, sink);
    document::secret::check(document, sink);
}

#[cfg(test)]
mod tests;
