//! One job compiled as `jobc check` does it, with what the features read of it.

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::adjust::Adjustments;
use jobc_compiler::compile::{self, Planned, Request};
use jobc_compiler::diagnostic::{Diagnostic, DocumentId, Sink};
use jobc_compiler::document::Document;
use jobc_compiler::files::Files;
use jobc_compiler::lock::Locking;
use jobc_compiler::source::{Source, SourceId, Sources};
use jobc_compiler::{parse, validate};
use jobc_schema::BackendName;
use lsp_types::Uri;

use crate::uri;

/// What was compiled: the texts at that moment.
pub(crate) struct Input<'a> {
    /// The job's path; a text without a file has none.
    pub(crate) path: Option<&'a Utf8Path>,
    pub(crate) text: &'a str,
    /// The targets file's path and text.
    pub(crate) targets: Option<(Utf8PathBuf, String)>,
    pub(crate) files: &'a dyn Files,
}

/// What a person chose for one question; nothing for the diagnostics, which are those of `jobc check FILE`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choice {
    pub(crate) target: Option<String>,
    pub(crate) backend: Option<BackendName>,
}

/// What came of it.
pub(crate) struct Analysis {
    pub(crate) sources: Sources,
    /// The text that was compiled: a job, or a targets file on its own.
    pub(crate) job: SourceId,
    /// What was found, in the order of the files.
    pub(crate) findings: Vec<Diagnostic>,
    /// The decided jobs; nothing where the job has errors.
    pub(crate) planned: Option<Planned>,
}

impl Analysis {
    /// Runs all passes but the last, as `jobc check` does.
    pub(crate) fn new(input: &Input<'_>) -> Self {
        let mut sink = Sink::new();
        let (mut sources, job, targets) = sources(input);
        let choice = Choice::default();
        let request = request(input, job, targets, &choice);
        let planned = compile::plan(&mut sources, &request, &mut sink);
        if let Some(planned) = &planned {
            compile::check_all(planned, &request, &mut sink);
        }
        Self { sources, job, findings: sink.finish(), planned }
    }

    /// What is wrong with a targets file, whatever job uses it.
    pub(crate) fn of_targets(path: &Utf8Path, text: &str) -> Self {
        let mut sources = Sources::new();
        let id = sources.add(Source::new(path, text));
        let mut sink = Sink::new();
        if let Some(document) = parse::parse(&sources, id, &mut sink) {
            validate::targets(&document, &mut sink);
            sink.locate(DocumentId::Targets, &document);
        }
        Self { sources, job: id, findings: sink.finish(), planned: None }
    }

    /// The address of a source; nothing for a template that comes with jobc.
    pub(crate) fn uri(&self, id: SourceId, job: &Uri) -> Option<Uri> {
        if id == self.job {
            return Some(job.clone());
        }
        let source = self.sources.get(id).path();
        if source.starts_with("std") && self.sources.get(id).uses().is_some() {
            return None;
        }
        let folder =
            uri::path(job).and_then(|path| path.parent().map(Utf8Path::to_owned)).unwrap_or_default();
        Some(uri::of(&uri::normal(&folder.join(source))))
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

/// What the compiler is asked.
pub(crate) fn request<'a>(
    input: &'a Input<'_>,
    job: SourceId,
    targets: Option<SourceId>,
    choice: &Choice,
) -> Request<'a> {
    Request {
        job,
        targets,
        set: vec![],
        params: vec![],
        only_targets: choice.target.iter().cloned().collect(),
        only_backends: choice.backend.into_iter().collect(),
        allow_lossy: false,
        gpu_injection: None,
        files: input.files,
        to_job: &beside,
        run_here: false,
        locking: Locking::Followed,
        gpus_here: None,
        adjustments: Adjustments::default(),
    }
}

/// The way back from `out/<job>/<target>/`, where files are written unless somebody says otherwise.
fn beside(_: &str) -> Utf8PathBuf {
    Utf8PathBuf::from("../../..")
}

/// A text on its own, without the passes: what names and symbols are read from.
pub(crate) fn parse_alone(path: Option<&Utf8Path>, text: &str) -> Option<Document> {
    let mut sources = Sources::new();
    let id = sources.add(Source::new(path.unwrap_or("job.yaml".into()), text));
    parse::parse(&sources, id, &mut Sink::new())
}
