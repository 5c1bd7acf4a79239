//! The note about a backend of the default target that cannot express the job.

use jobc_schema::BackendName;
use jobc_schema::plan::JobPlan;

use crate::built_in_targets::built_in_targets;
use crate::diagnostic::{Diagnostic, Severity, Sink, codes};
use crate::suggest;

/// Reports that a backend was left out, with the first of its errors as the reason.
pub(super) fn note(job: &JobPlan, backend: BackendName, findings: Sink) -> Diagnostic {
    let target = &job.target.name;
    let errors: Vec<Diagnostic> =
        findings.finish().into_iter().filter(|d| d.severity == Severity::Error).collect();
    let mut note = Diagnostic::info(codes::SKIPPED, format!("no `{backend}` output for target `{target}`"));
    if let Some(first) = errors.first() {
        note.labels.clone_from(&first.labels);
        note = note.note(first.message.clone());
        note.notes.extend(first.notes.iter().filter(|n| !n.contains("--allow-lossy")).cloned());
    }
    if errors.len() > 1 {
        let more = errors.len() - 1;
        note = note.note(format!("and {more} more; `--target {target}` shows them all"));
    }
    let built_in = built_in_targets();
    let others = built_in.iter().map(|(name, _)| *name).filter(|name| name != target);
    note.note(format!(
        "without a targets file the target is `{target}`; `--target NAME` selects another: {}",
        suggest::list(others)
    ))
}
