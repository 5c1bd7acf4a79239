//! Validators of job files and of `targets.yaml`, generated from the committed JSON Schemas when this crate is built.
//!
//! They are a crate of their own because a schema becomes much code: an edit of the compiler does not compile it again,
//! and a profile override in the workspace's `Cargo.toml` says how much it is optimized. Nothing is compiled at run
//! time but the patterns that a file needs.

use jsonschema::ErrorIterator;
use serde_json::Value;

#[jsonschema::validator(path = "../job.v1.schema.json", methods = {validate = false})]
struct Job;

#[jsonschema::validator(path = "../targets.v1.schema.json", methods = {validate = false})]
struct Targets;

/// Whether a document is a valid job file; faster than [`job_errors`].
pub fn is_valid_job(document: &Value) -> bool {
    Job::is_valid(document)
}

/// Everything in a document that makes it an invalid job file.
pub fn job_errors(document: &Value) -> ErrorIterator<'_> {
    Job::iter_errors(document)
}

/// Whether a document is a valid `targets.yaml`; faster than [`targets_errors`].
pub fn is_valid_targets(document: &Value) -> bool {
    Targets::is_valid(document)
}

/// Everything in a document that makes it an invalid `targets.yaml`.
pub fn targets_errors(document: &Value) -> ErrorIterator<'_> {
    Targets::iter_errors(document)
}
