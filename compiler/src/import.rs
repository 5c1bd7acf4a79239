//! Pass 1b: converts other formats to our document format, keeping the spans of the original.
//!
//! A file's format is detected by its text or its keys. Findings of later passes about an imported job point at the lines
//! of the original; errors in the original itself are reported here, in its own terms.

mod account;
mod amounts;
mod command;
mod compose;
mod container;
mod devcontainer;
mod docker_run;
mod draft;
mod env_file;
mod field_names;
mod fields;
mod keyed;
mod kubernetes;
mod nodes;
mod openpai_v1;
mod openpai_v2;
mod options;
mod paths;
mod read;
mod sbatch;
mod selection;
mod skypilot;
mod tables;
mod torchx;
mod values;
mod words;

use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::document::{Document, Node};
use crate::files::Files;
use crate::parse::parse;
use crate::source::{Source, SourceId, Sources, Span};

pub use account::{Account, Line, Outcome, Row};
pub use field_names::in_its_words;
pub(crate) use read::{Comments, Read, comment_lines};
pub use sbatch::requested as request_of_script;
pub use selection::Selection;
pub use tables::{FORMATS, table};

/// Reads a text of another tool that is neither YAML nor JSON; `None` for other texts.
pub(crate) fn read_text(
    sources: &Sources,
    id: SourceId,
    files: &dyn Files,
    selection: &Selection,
    sink: &mut Sink,
) -> Option<Read> {
    let format = text_format(sources.get(id))?;
    crate::parse::is_readable(sources, id, sink).then_some(())?;
    let read = match format {
        Format::Sbatch => sbatch::read(sources, id, selection, sink),
        _ => docker_run::read(sources, id, docker_run::command(sources.get(id).text())?, files, sink),
    };
    read.account.summarize(sources, sink);
    Some(read)
}

/// Whether `sbatch` reads a variable of the caller as an option.
pub fn is_option_of_sbatch(variable: &str) -> bool {
    sbatch::option_of_variable(variable).is_some()
}

/// The format of a text that is neither YAML nor JSON.
pub fn text_format(source: &Source) -> Option<Format> {
    if sbatch::is_script(source.text()) {
        return Some(Format::Sbatch);
    }
    docker_run::command(source.text()).map(|_| Format::DockerRun)
}

/// Reads a job file of any format up to a document: that of another text, or what is parsed.
pub fn document(sources: &mut Sources, id: SourceId, files: &dyn Files, sink: &mut Sink) -> Option<Document> {
    match text_format(sources.get(id)) {
        Some(_) => read_text(sources, id, files, &Selection::default(), sink).and_then(|read| read.document),
        None => parse(sources, id, sink),
    }
}

/// Converts a file of another tool's format; a file of ours passes through unchanged.
///
/// Supported are Compose, manifests of Kubernetes, OpenPAI's protocol v2, and v1 with the short template `{jobName, image, dataDir, outputDir,
/// taskRoles}`. Returns `None` if the file has errors.
pub fn import(
    document: Document,
    sources: &mut Sources,
    files: &dyn Files,
    selection: &Selection,
    sink: &mut Sink,
) -> Option<Document> {
    match recognise(&document) {
        Form::Own => Some(document),
        Form::Compose | Form::Kubernetes | Form::Small(_) => {
            read_document(&document, sources, files, selection, sink)?.document
        }
        Form::OpenpaiV1 => openpai_v1::import(&document, sink),
        Form::OpenpaiV2 => {
            let apart = second_document(sink);
            openpai_v2::import(&document, sources, apart, sink)
        }
    }
}

/// Reads a document of a format whose parts are accounted for; `None` for other documents.
pub(crate) fn read_document(
    document: &Document,
    sources: &mut Sources,
    files: &dyn Files,
    selection: &Selection,
    sink: &mut Sink,
) -> Option<Read> {
    let read = match recognise(document) {
        Form::Compose => compose::read(document, sources, files, selection, sink),
        Form::Small(Format::Skypilot) => skypilot::read(document, sources, sink),
        Form::Small(Format::Torchx) => torchx::read(document, sources, sink),
        Form::Small(_) => devcontainer::read(document, sources, sink),
        Form::Kubernetes => kubernetes::read(document, sources, selection, sink),
        _ => return None,
    };
    read.account.summarize(sources, sink);
    Some(read)
}

/// A format of another tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// OpenPAI protocol v1, short or full.
    V1,
    /// OpenPAI protocol v2.
    V2,
    /// A batch script of Slurm.
    Sbatch,
    /// A line of `docker run` or `podman run`.
    DockerRun,
    /// A Compose file.
    Compose,
    /// A manifest of Kubernetes.
    Kubernetes,
    /// A task of SkyPilot.
    Skypilot,
    /// An application of TorchX.
    Torchx,
    /// A development container.
    Devcontainer,
}

impl Format {
    /// Whether it is one of OpenPAI.
    pub fn is_openpai(self) -> bool {
        matches!(self, Self::V1 | Self::V2)
    }
}

/// The foreign format that a document is in; `None` for ours.
pub fn format_of(document: &Document) -> Option<Format> {
    match recognise(document) {
        Form::Own => None,
        Form::Compose => Some(Format::Compose),
        Form::Kubernetes => Some(Format::Kubernetes),
        Form::Small(format) => Some(format),
        Form::OpenpaiV1 => Some(Format::V1),
        Form::OpenpaiV2 => Some(Format::V2),
    }
}

/// The names of the jobs of a file that holds several, as manifests of Kubernetes may; none for one job.
pub fn job_names(document: &Document) -> Vec<String> {
    match recognise(document) {
        Form::Kubernetes => kubernetes::job_names(&document.root),
        _ => vec![],
    }
}

/// Whether a document is a job in a foreign format.
pub fn is_foreign(document: &Document) -> bool {
    !matches!(recognise(document), Form::Own)
}

/// A node of plain JSON, with one span for all of it.
pub(crate) fn plain(span: Span, value: &serde_json::Value) -> Node {
    nodes::json(span, value)
}

/// Replaces the error about a second document, which OpenPAI's own tests use for values of secrets, with a note.
fn second_document(sink: &mut Sink) -> bool {
    let found = sink.diagnostics().iter().find(|d| d.code == codes::SEVERAL_DOCUMENTS).cloned();
    let Some(found) = found else { return false };
    sink.retain(|d| d.code != codes::SEVERAL_DOCUMENTS);
    let mut note = Diagnostic::info(
        codes::OPENPAI_SECRET,
        "what follows the job is not read: the values of secrets are given apart",
    )
    .note("OpenPAI's server takes one document");
    note.labels = found.labels.into_iter().take(1).collect();
    sink.push(note);
    true
}

/// The format of a file.
enum Form {
    /// Ours, or an invalid file that validation reports.
    Own,
    /// A Compose file.
    Compose,
    /// A manifest of Kubernetes.
    Kubernetes,
    /// A format whose reader is a table of keys.
    Small(Format),
    /// OpenPAI protocol v1, short or full.
    OpenpaiV1,
    /// OpenPAI protocol v2.
    OpenpaiV2,
}

fn recognise(document: &Document) -> Form {
    let root = &document.root;
    let entry = |key: &str| root.entries().iter().find(|entry| entry.key == key);
    if torchx::is_app(root) {
        return Form::Small(Format::Torchx);
    }
    // A file with a key that only our format has is ours, whatever other keys it has.
    if entry("roles").is_some() {
        return Form::Own;
    }
    if kubernetes::is_manifest(root) {
        return Form::Kubernetes;
    }
    if compose::is_compose(root) {
        return Form::Compose;
    }
    if skypilot::is_task(root) {
        return Form::Small(Format::Skypilot);
    }
    if devcontainer::is_container(root) {
        return Form::Small(Format::Devcontainer);
    }
    let is_map = |key: &str| entry(key).is_some_and(|found| !found.value.entries().is_empty());
    if entry("protocolVersion").or_else(|| entry("prerequisites")).is_some() {
        return Form::OpenpaiV2;
    }
    if entry("jobName").is_some() || entry("taskRoles").is_some_and(|roles| !roles.value.items().is_empty()) {
        return Form::OpenpaiV1;
    }
    // A file with `version: 1` and keys that only our format has is ours, with a misplaced key of OpenPAI.
    let is_first = entry("version").is_some_and(|version| version.value.to_json() == 1);
    let own = is_first && ["image", "data", "outputs"].iter().any(|key| entry(key).is_some());
    if is_map("taskRoles") && !own {
        return Form::OpenpaiV2;
    }
    Form::Own
}

#[cfg(test)]
mod tests;
