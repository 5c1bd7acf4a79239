//! Pass 2: checks a document against its schema and the rules, reports all errors at once, and makes it typed.
//!
//! The schema that editors use is the one used here: [`jobc_validator`] is generated from it. Its errors name
//! keywords; [`explain`] translates each for the author of the file. What a schema cannot express, such as "exactly one
//! of these keys", is in `rules/`, one idea per file.

mod accepted;
mod amounts;
mod bounds;
mod choices;
mod compose;
mod convert;
mod explain;
mod expression;
mod foreign;
mod forms;
mod keys;
mod kinds;
mod modes;
mod names;
mod place;
mod refused_value;
mod report;
mod rules;
mod schema;
mod suspicious_text;
mod texts;
mod values;

use std::collections::BTreeMap;

use jobc_schema::{Job, Pointer, Targets};
use jsonschema::ErrorIterator;

use crate::diagnostic::{DocumentId, Sink, codes};
use crate::document::Document;

pub use suspicious_text::check_written;

use report::{MAX_REPORTED, Report};
use schema::Schema;

/// Checks a job document against the schema and the rules, and returns whether to continue.
///
/// Strings that contain `${{ … }}` are accepted if only their content could be wrong: validate again once they
/// are evaluated. At most 100 findings of one code are shown, and the rest counted.
pub fn validate(document: &Document, sink: &mut Sink) -> bool {
    let before = sink.error_count();
    if report_foreign(document, sink) {
        return false;
    }
    let mut report = Report::new(document, DocumentId::Job, sink);
    let json = document.to_json();
    if !jobc_validator::is_valid_job(&json) {
        explain_all(jobc_validator::job_errors(&json), &schema::JOB, &mut report);
    }
    rules::check_job(&mut report);
    report.finish();
    sink.error_count() == before
}

/// The number of findings about keys of a job that do not go together, such as `run` beside `args`.
pub fn conflicts(document: &Document) -> usize {
    let mut sink = Sink::new();
    let mut report = Report::new(document, DocumentId::Job, &mut sink);
    rules::check_job(&mut report);
    report.finish();
    let of_keys = [codes::EXCLUSIVE, codes::IMAGE_KEYS];
    sink.diagnostics().iter().filter(|finding| of_keys.contains(&finding.code)).count()
}

/// Converts a document that [`validate`] accepted, and whose expressions are evaluated, to a job.
///
/// Numbers keep their text where it matters (`3.10` in `env`); `x-*` keys at the top level are dropped.
pub fn job(document: &Document, sink: &mut Sink) -> Option<Job> {
    convert::deserialize_node(document, DocumentId::Job, convert::keeps_text, sink)
}

/// Reports a file of another tool, a template or a targets file; returns whether it is one.
pub fn report_foreign(document: &Document, sink: &mut Sink) -> bool {
    let mut report = Report::new(document, DocumentId::Job, sink);
    let is_foreign = rules::foreign_file::report_foreign(&mut report);
    report.finish();
    is_foreign
}

/// Whether a document is that of a targets file, not of a job.
pub fn is_targets_file(document: &Document) -> bool {
    rules::foreign_file::is_targets_file(&document.root)
}

/// Checks `targets.yaml` as [`validate`] does a job, and converts it.
pub fn targets(document: &Document, sink: &mut Sink) -> Option<Targets> {
    let before = sink.error_count();
    let mut report = Report::new(document, DocumentId::Targets, sink);
    let json = document.to_json();
    if !jobc_validator::is_valid_targets(&json) {
        explain_all(jobc_validator::targets_errors(&json), &schema::TARGETS, &mut report);
    }
    rules::check_targets(&mut report);
    report.finish();
    if sink.error_count() > before {
        return None;
    }
    convert::deserialize_node(document, DocumentId::Targets, convert::keeps_all, sink)
}

/// Explains the library's errors, up to a limit per code.
fn explain_all(errors: ErrorIterator<'_>, schema: &Schema, report: &mut Report<'_>) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for error in errors {
        let keyword = error.kind().keyword();
        let count = seen.entry(keyword.to_owned()).or_default();
        *count += 1;
        if *count <= MAX_REPORTED {
            explain::explain(&error, schema, report);
        } else {
            let code = match keyword {
                "additionalProperties" => codes::UNKNOWN_KEY,
                "required" => codes::MISSING_KEY,
                "pattern" => codes::MALFORMED,
                "propertyNames" => codes::BAD_NAME,
                "enum" | "oneOf" | "const" => codes::NOT_ONE_OF,
                _ => codes::WRONG_KIND,
            };
            report.count(code, &Pointer::new(error.instance_path().as_str()));
        }
    }
}

#[cfg(test)]
mod tests;
