//! Copies of files that `.dockerignore` excludes from the build context.

use camino::Utf8Path;
use jobc_dockerfile::ignore::Ignore;
use jobc_dockerfile::{Inspection, ignored_sources};

use crate::diagnostic::{Severity, Sink};

use super::finding::severity_of_remark;
use super::request::Request;

/// Reports them. The builder reports a `.dockerignore` that cannot be read.
pub(super) fn check(file: &Inspection, request: &Request<'_>, sink: &mut Sink) {
    let context = request.context.strip_prefix(".").unwrap_or(request.context);
    let Ok(bytes) = request.files.read(&context.join(Utf8Path::new(".dockerignore"))) else { return };
    let Ok(ignore) = Ignore::read(&String::from_utf8_lossy(&bytes)) else { return };
    let (errors, remarks) = file.checks.sort(ignored_sources(file, &ignore));
    for found in &errors {
        request.push(found, Severity::Error, sink);
    }
    for found in &remarks {
        request.push(found, severity_of_remark(found), sink);
    }
}
