//! Notes about backends that were tried only because none was selected, and cannot express the job.

use jobc_schema::plan::{ImageSource, JobPlan};
use jobc_schema::{BackendName, Pointer};

use super::field;
use crate::diagnostic::{Diagnostic, Place, Severity, Sink, codes};

/// The maximum number of fields to name for a target.
const MAX_FIELDS: usize = 2;

/// A backend that was skipped, with the errors that are the reason.
#[derive(Debug)]
pub struct SkippedBackend {
    target: String,
    /// Whether the target is this host.
    is_here: bool,
    backend: BackendName,
    errors: Vec<Diagnostic>,
}

impl SkippedBackend {
    pub(super) fn new(job: &JobPlan, backend: BackendName, findings: Sink) -> Self {
        let errors = findings.finish().into_iter().filter(|d| d.severity == Severity::Error).collect();
        Self { target: job.target.name.clone(), is_here: is_here(job), backend, errors }
    }

    /// The note, with the first reason.
    fn note(&self) -> Diagnostic {
        let message = format!("no `{}` output for target `{}`", self.backend, self.target);
        let mut note = Diagnostic::info(codes::SKIPPED, message);
        if let Some(first) = self.errors.first() {
            note.labels.clone_from(&first.labels);
            note = note.note(first.message.clone());
            note.notes.extend(first.notes.iter().filter(|n| !n.contains("--allow-lossy")).cloned());
        }
        if self.errors.len() > 1 {
            let more = self.errors.len() - 1;
            note = note.note(format!("and {more} more; `--target {}` shows them all", self.target));
        }
        note
    }

    /// ``target `openpai` refuses `image`, `needs` of role `a` and 2 more``.
    fn refusal(&self) -> String {
        let place = |error: &Diagnostic| match &error.labels.first()?.place {
            Place::Path { pointer, .. } => Some(field(pointer)),
            _ => None,
        };
        let mut fields: Vec<String> = self.errors.iter().filter_map(place).collect();
        let mut seen = std::collections::BTreeSet::new();
        fields.retain(|field| seen.insert(field.clone()));
        if fields.is_empty() {
            fields.push("the job".to_owned());
        }
        let more = fields.len().saturating_sub(MAX_FIELDS);
        let listed = if more == 0 {
            let (last, before) = fields.split_last().map_or(("", &[][..]), |(last, rest)| (&**last, rest));
            before.iter().map(|field| format!("{field} and ")).collect::<String>() + last
        } else {
            format!("{} and {more} more", fields[..MAX_FIELDS].join(", "))
        };
        format!("target `{}` refuses {listed}", self.target)
    }
}

/// Reports the skipped backends, each with its reason. For a job that requests what only this host has, those
/// of other targets share one line.
pub fn report(jobs: &[JobPlan], skipped: &[SkippedBackend], sink: &mut Sink) {
    if skipped.is_empty() {
        return;
    }
    let tied = jobs.iter().find_map(local_place);
    let (elsewhere, others): (Vec<&SkippedBackend>, Vec<&SkippedBackend>) =
        skipped.iter().partition(|one| tied.is_some() && !one.is_here);
    for one in others {
        sink.push(one.note());
    }
    if let (Some((what, place)), [first, ..]) = (tied, &elsewhere[..]) {
        sink.push(summary(what, place, &first.target, &elsewhere));
    }
}

/// Whether a job requests what only this host has, and its target is another.
pub fn is_misplaced(job: &JobPlan) -> bool {
    !is_here(job) && local_place(job).is_some()
}

fn is_here(job: &JobPlan) -> bool {
    job.target.settings.is_host()
}

/// What ties a job to this host, and the span that requests it.
fn local_place(job: &JobPlan) -> Option<(&'static str, &Pointer)> {
    job.images.values().find_map(|image| {
        let what = match image.source {
            ImageSource::Host { .. } => "`image: host`",
            ImageSource::File { .. } => "an image from a file",
            _ => return None,
        };
        Some((what, &image.declared_at))
    })
}

fn summary(what: &str, place: &Pointer, target: &str, skipped: &[&SkippedBackend]) -> Diagnostic {
    let mut refusals: Vec<String> = Vec::new();
    for refusal in skipped.iter().map(|one| one.refusal()) {
        // The jobs of a matrix are skipped for the same reason.
        if !refusals.contains(&refusal) {
            refusals.push(refusal);
        }
    }
    let message = format!("{what} is for this host: {}; `--target {target}` shows why", refusals.join("; "));
    Diagnostic::info(codes::SKIPPED, message).at_key(place, "").brief()
}
