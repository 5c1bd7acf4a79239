//! `jobc/import`: a text of another tool as a job file, with the findings at the lines of that text.

use camino::Utf8Path;
use jobc_compiler::diagnostic::Sink;
use jobc_compiler::import::Selection;
use jobc_compiler::rewrite::{RewriteResult, rewrite};
use jobc_compiler::source::{Source, Sources};
use lsp_types::{Diagnostic, Uri};
use serde::{Deserialize, Serialize};

use crate::diagnostics::Places;
use crate::session::Session;
use crate::uri;

/// The parameters of `jobc/import`.
#[derive(Debug, Deserialize)]
pub(crate) struct ImportParams {
    /// Of the text, which need not be open: the paths in it are relative to its directory.
    uri: Uri,
    text: String,
}

/// The result of `jobc/import`.
#[derive(Debug, Serialize)]
pub(crate) struct ImportResult {
    /// The job file; null if the findings have errors.
    text: Option<String>,
    /// A targets file with the settings of the cluster; null if the text has none.
    targets: Option<String>,
    /// What is not in the job file as it was, at the lines of the text.
    findings: Vec<Diagnostic>,
}

/// Rewrites a text of another tool as `jobc import` does.
pub(crate) fn import(session: &Session<'_>, params: ImportParams) -> Result<ImportResult, String> {
    let path = uri::path(&params.uri);
    let directory = path.as_deref().and_then(Utf8Path::parent);
    let files = session.files(directory);
    let mut sources = Sources::new();
    let id = sources.add(Source::new(path.as_deref().unwrap_or("job.yaml".into()), params.text));
    let selection = Selection { is_sketch: true, ..Selection::default() };
    let mut sink = Sink::new();
    let (text, targets) = match rewrite(&mut sources, id, &files, &selection, &mut sink).0 {
        RewriteResult::Job(text, targets) => (Some(text), targets),
        RewriteResult::Refused => (None, None),
        RewriteResult::Own => return Err("the text is already a job file of jobc".to_owned()),
    };
    let places = Places::new(&sources, &session.client, |source| (source == id).then(|| params.uri.clone()));
    let findings = sink.finish();
    let findings = findings.iter().map(|finding| places.diagnostic(finding, &params.uri).1).collect();
    Ok(ImportResult { text, targets, findings })
}
