//! One job, compiled as by `jobc check`, with the results that the features use.

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::compile::{self, Planning, Request};
use jobc_compiler::diagnostic::{Diagnostic, Sink};
use jobc_compiler::document::Document;
use jobc_compiler::files::Files;
use jobc_compiler::import::text_format;
use jobc_compiler::parse;
use jobc_compiler::source::{Source, SourceId, Sources};
use jobc_schema::BackendName;
use lsp_types::Uri;

use crate::uri;

/// The texts that were compiled.
pub(crate) struct Input<'a> {
    /// The path of the job; `None` for a text without a file.
    pub(crate) path: Option<&'a Utf8Path>,
    pub(crate) text: &'a str,
    /// The targets file's path and text.
    pub(crate) targets: Option<(Utf8PathBuf, String)>,
    pub(crate) files: &'a dyn Files,
    /// Whether the job is known to be started without environment variables.
    pub(crate) empty_environment: bool,
}

/// The selected targets and backend; `None` for the findings of `jobc check FILE`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choice {
    pub(crate) targets: Vec<String>,
    pub(crate) backend: Option<BackendName>,
}

/// The result.
pub(crate) struct Analysis {
    pub(crate) sources: Sources,
    /// The compiled text: a job, or a targets file on its own.
    pub(crate) job: SourceId,
    /// The findings, in the order of the files.
    pub(crate) findings: Vec<Diagnostic>,
    /// The resolved jobs; `None` if the job has errors.
    pub(crate) planned: Option<Planning>,
}

impl Analysis {
    /// Runs all passes but the last, as `jobc check` does. If `tree` is the tree of a text without findings,
    /// the text is not parsed again.
    pub(crate) fn new(input: &Input<'_>, choice: &Choice, tree: Option<Document>) -> Self {
        let mut sink = Sink::new();
        let (mut sources, job, targets) = sources(input);
        let request = request(input, job, targets, choice);
        // A batch script may be YAML by chance.
        let tree = tree.filter(|_| text_format(sources.get(job)).is_none());
        let planned = match tree {
            Some(tree) => compile::plan_document(Some(tree), &mut sources, &request, &mut sink),
            None => compile::plan(&mut sources, &request, &mut sink),
        };
        if let Some(planned) = &planned {
            compile::check_all(&sources, planned, &request, &mut sink);
        }
        Self { sources, job, findings: sink.finish(), planned }
    }

    /// The findings of a targets file that do not depend on a job.
    pub(crate) fn of_targets(path: &Utf8Path, text: &str) -> Self {
        let mut sources = Sources::new();
        let id = sources.add(Source::new(path, text));
        let mut sink = Sink::new();
        if let Some(document) = parse::parse(&sources, id, &mut sink) {
            compile::check_targets(&document, &sources, &mut sink);
        }
        Self { sources, job: id, findings: sink.finish(), planned: None }
    }

    /// The URI of a source; `None` for a template that is built in or from Git.
    pub(crate) fn uri(&self, id: SourceId, job: &Uri) -> Option<Uri> {
        if id == self.job {
            return Some(job.clone());
        }
        let source = self.sources.get(id).path();
        let has_no_file = source.starts_with("std") || source.as_str().starts_with("git+");
        if has_no_file && self.sources.get(id).uses().is_some() {
            return None;
        }
        let directory =
            uri::path(job).and_then(|path| path.parent().map(Utf8Path::to_owned)).unwrap_or_default();
        Some(uri::of(&uri::normal(&directory.join(source))))
    }
}

/// The texts of a compilation.
pub(crate) fn sources(input: &Input<'_>) -> (Sources, SourceId, Option<SourceId>) {
    let mut sources = Sources::new();
    let job = sources.add(Source::new(input.path.unwrap_or("job.yaml".into()), input.text));
    let targets =
        input.targets.as_ref().map(|(path, text)| sources.add(Source::new(path.clone(), text.as_str())));
    (sources, job, targets)
}

/// The request to the compiler.
pub(crate) fn request<'a>(
    input: &'a Input<'_>,
    job: SourceId,
    targets: Option<SourceId>,
    choice: &Choice,
) -> Request<'a> {
    Request {
        targets,
        only_targets: choice.targets.clone(),
        only_backends: choice.backend.into_iter().collect(),
        // The server's environment is not that of the user who starts the job.
        environment: input.empty_environment.then_some(&|_| None),
        ..Request::new(job, input.files, &beside)
    }
}

/// The path back from `out/<job>/<target>/`, the default output directory.
fn beside(_: &str) -> Utf8PathBuf {
    Utf8PathBuf::from("../../..")
}

/// A text on its own, without the passes; the source of names and symbols.
pub(crate) fn parse_alone(path: Option<&Utf8Path>, text: &str) -> Option<Document> {
    let mut sources = Sources::new();
    let id = sources.add(Source::new(path.unwrap_or("job.yaml".into()), text));
    parse::parse(&sources, id, &mut Sink::new())
}
