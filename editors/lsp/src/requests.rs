//! Requests that extend the protocol; docs/reference/language-server.md describes them.

use jobc_compiler::compile::{self, Output, Planning, Request, plan_json};
use jobc_compiler::diagnostic::{Code, Severity, Sink};
use jobc_compiler::emit;
use jobc_compiler::source::Sources;
use jobc_compiler::suggest;
use jobc_schema::{BackendName, Plan};
use lsp_types::Uri;
use serde::{Deserialize, Serialize};

use crate::analysis::{self, Choice};
use crate::kind::Kind;
use crate::session::Session;
use crate::targets::TargetList;

/// The parameters of `jobc/plan`.
#[derive(Debug, Deserialize)]
pub(crate) struct PlanParams {
    uri: Uri,
    target: Option<String>,
    #[serde(default)]
    format: Format,
}

/// The format of a plan.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    #[default]
    Yaml,
    Json,
}

/// The result of `jobc/plan`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlanResult {
    text: String,
    language_id: Format,
    targets: Vec<String>,
}

/// The parameters of `jobc/artifact`.
#[derive(Debug, Deserialize)]
pub(crate) struct ArtifactParams {
    uri: Uri,
    backend: BackendName,
    target: Option<String>,
}

/// The result of `jobc/artifact`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ArtifactResult {
    text: String,
    language_id: &'static str,
    files: Vec<ArtifactFile>,
}

#[derive(Debug, Serialize)]
struct ArtifactFile {
    job: String,
    target: String,
    path: String,
    text: String,
}

/// The parameters of `jobc/build`.
#[derive(Debug, Deserialize)]
pub(crate) struct BuildParams {
    uri: Uri,
    target: Option<String>,
}

/// The result of `jobc/build`.
#[derive(Debug, Serialize)]
pub(crate) struct BuildResult {
    files: Vec<ArtifactFile>,
}

/// The parameters of `jobc/targets`.
#[derive(Debug, Deserialize)]
pub(crate) struct TargetsParams {
    uri: Uri,
}

/// The parameters of `jobc/explain`.
#[derive(Debug, Deserialize)]
pub(crate) struct ExplainParams {
    code: String,
}

/// The result of `jobc/explain`.
#[derive(Debug, Serialize)]
pub(crate) struct ExplainResult {
    code: &'static str,
    title: &'static str,
    markdown: &'static str,
}

/// The resolved plan of a job.
pub(crate) fn plan(session: &Session<'_>, params: &PlanParams) -> Result<PlanResult, String> {
    let choice = choice(session, &params.uri, params.target.as_ref(), None);
    let text = with_plan(session, &params.uri, &choice, |planned, _, _, _| {
        let plan = Plan { version: 1, jobs: planned.jobs };
        match params.format {
            Format::Json => plan_json(&plan),
            Format::Yaml => emit::to_yaml(&serde_json::to_value(&plan).expect("a plan is plain JSON")),
        }
    })?;
    Ok(PlanResult { text, language_id: params.format, targets: targets(session, &params.uri) })
}

/// The files that a backend writes.
pub(crate) fn artifact(session: &Session<'_>, params: &ArtifactParams) -> Result<ArtifactResult, String> {
    let choice = choice(session, &params.uri, params.target.as_ref(), Some(params.backend));
    let outputs = with_plan(session, &params.uri, &choice, |planned, sources, request, sink| {
        compile::build(sources, planned, request, sink)
    })?;
    let own = |path: &str| matches!(path, "plan.json" | "sourcemap.json");
    let mut files = files(&outputs);
    files.retain(|file| !own(&file.path));
    if files.is_empty() {
        return Err(format!("the backend `{}` has nothing to write for this job", params.backend));
    }
    let several = outputs.len() > 1;
    let language_id = match params.backend {
        BackendName::Kubernetes | BackendName::Openpai => "yaml",
        BackendName::Oci => "json",
        BackendName::Dockerfile => "dockerfile",
        BackendName::Slurm => "shellscript",
        BackendName::Cgroup | BackendName::Plugin(_) => "plaintext",
    };
    Ok(ArtifactResult {
        text: files.iter().map(|file| display_name(file, several)).collect(),
        language_id,
        files,
    })
}

/// All files that `jobc build` writes.
pub(crate) fn build(session: &Session<'_>, params: &BuildParams) -> Result<BuildResult, String> {
    let choice = choice(session, &params.uri, params.target.as_ref(), None);
    let outputs = with_plan(session, &params.uri, &choice, |planned, sources, request, sink| {
        compile::build(sources, planned, request, sink)
    })?;
    Ok(BuildResult { files: files(&outputs) })
}

/// The targets of an open job.
pub(crate) fn known_targets(session: &Session<'_>, params: &TargetsParams) -> Result<TargetList, String> {
    match session.documents.get(&params.uri) {
        Some(open) if open.kind == Kind::Job => {
            Ok(session.known_targets(open).shown_for(&session.client.settings.target))
        }
        Some(_) => Err(format!("`{}` is not a job file", params.uri.0)),
        None => Err(format!("`{}` is not open", params.uri.0)),
    }
}

/// The page of a code.
pub(crate) fn explain(params: &ExplainParams) -> Result<ExplainResult, String> {
    let Some(code) = Code::parse(&params.code) else {
        let known = Code::all().map(|(code, _)| code.as_str());
        let near = suggest::nearest(&params.code.to_ascii_uppercase(), known);
        let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        return Err(format!("unknown code `{}`{near}", params.code));
    };
    Ok(ExplainResult { code: code.as_str(), title: code.title(), markdown: code.page() })
}

/// Compiles an open job with options and returns the resolved plans, or the first error.
pub(crate) fn with_plan<T>(
    session: &Session<'_>,
    uri: &Uri,
    choice: &Choice,
    make: impl FnOnce(Planning, &Sources, &Request<'_>, &mut Sink) -> T,
) -> Result<T, String> {
    let open = session.documents.get(uri).ok_or_else(|| format!("`{}` is not open", uri.0))?;
    if open.kind != Kind::Job {
        return Err(format!("`{}` is not a job file", uri.0));
    }
    let overlay = session.overlay(open);
    let input = session.input(open, &overlay);
    let (mut sources, job, targets) = analysis::sources(&input);
    let request = analysis::request(&input, job, targets, choice);
    let mut sink = Sink::new();
    let result = compile::plan(&mut sources, &request, &mut sink)
        .map(|planned| make(planned, &sources, &request, &mut sink));
    result.filter(|_| !sink.has_errors()).ok_or_else(|| errors(sink))
}

fn errors(sink: Sink) -> String {
    let findings = sink.finish();
    let mut errors = findings.iter().filter(|finding| finding.severity == Severity::Error);
    let first =
        errors.next().map(|finding| format!("{}: {}", finding.code, finding.message)).unwrap_or_default();
    match errors.count() {
        0 => first,
        1 => format!("{first}; and 1 more error"),
        more => format!("{first}; and {more} more errors"),
    }
}

/// The targets of a request: the requested one, else those that jobs are shown for.
pub(crate) fn choice(
    session: &Session<'_>,
    uri: &Uri,
    target: Option<&String>,
    backend: Option<BackendName>,
) -> Choice {
    match (target, session.documents.get(uri)) {
        (None, Some(open)) => session.choice(open, backend),
        (target, _) => Choice { targets: target.into_iter().cloned().collect(), backend },
    }
}

/// The targets for which a job can be planned.
fn targets(session: &Session<'_>, uri: &Uri) -> Vec<String> {
    session.documents.get(uri).map(|open| session.known_targets(open).names()).unwrap_or_default()
}

/// The files of all outputs.
fn files(outputs: &[Output]) -> Vec<ArtifactFile> {
    let file = |output: &Output, artifact: &compile::Artifact| ArtifactFile {
        job: output.job.name.clone(),
        target: output.job.target.name.clone(),
        path: artifact.path.to_string(),
        text: String::from_utf8_lossy(&artifact.bytes).into_owned(),
    };
    outputs.iter().flat_map(|output| output.artifacts.iter().map(move |it| file(output, it))).collect()
}

/// One of several files, with its path as heading.
fn display_name(file: &ArtifactFile, several: bool) -> String {
    let path =
        if several { format!("{}/{}/{}", file.job, file.target, file.path) } else { file.path.clone() };
    let end = if file.text.ends_with('\n') { "" } else { "\n" };
    match file.path.rsplit('.').next() {
        Some("yaml") => format!("---\n# {path}\n{}{end}", file.text),
        _ => format!("==> {path} <==\n{}{end}", file.text),
    }
}
