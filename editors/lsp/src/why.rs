//! The effects of a line of a job on built files, and the causes of a line of such a file: `jobc/why`, and a lens
//! above each role and each top-level field.

use jobc_compiler::compile;
use jobc_compiler::document::{Entry, Node};
use jobc_compiler::source::Source;
use jobc_compiler::why::lines::Lines;
use jobc_compiler::why::source_map::{FILE, Part, SourceMap, dotted};
use jobc_compiler::why::{causes_of_line, effects_of, effects_of_line};
use jobc_schema::Pointer;
use jobc_schema::plural;
use lsp_types::{CodeLens, Command, Range, Uri};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::requests::{choice, with_plan};
use crate::session::Session;
use crate::tree::Tree;

/// The maximum number of tasks of a job with lenses: its files are built after every change.
const MAX_TASKS: u64 = 256;

/// The parameters of `jobc/why`: a line of an open job, or with `file` a line of a built file.
#[derive(Debug, Deserialize)]
pub(crate) struct WhyParams {
    uri: Uri,
    /// The line, from 0.
    line: u32,
    target: Option<String>,
    file: Option<BuiltFile>,
}

/// A file of a build.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BuiltFile {
    job: String,
    target: String,
    path: String,
}

/// The result of `jobc/why`.
#[derive(Debug, Default, Serialize)]
pub(crate) struct WhyResult {
    /// The fields on the line of the job.
    fields: Vec<String>,
    /// The lines of built files that it causes.
    lines: Vec<BuiltLine>,
    /// The causes of the line of the built file.
    causes: Vec<Cause>,
}

#[derive(Debug, Serialize)]
struct BuiltLine {
    #[serde(flatten)]
    file: BuiltFile,
    /// The line, from 0.
    line: u32,
    /// The last line of the effect, such as the end of a script.
    last: u32,
    text: String,
}

/// A field of the job with its first and last line from 0, or the description of a setting or default.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Cause {
    text: String,
    line: Option<u32>,
    last: Option<u32>,
}

/// Compiles the job, and answers about a line.
pub(crate) fn why(session: &Session<'_>, params: &WhyParams) -> Result<WhyResult, String> {
    // Use all targets: what a selected target cannot express is an error, and for others it is skipped.
    let (job, outputs) = build(session, &params.uri, params.target.as_ref())?;
    let line = params.line + 1;
    let Some(file) = &params.file else {
        let Some(effects) = effects_of_line(&job, line, &outputs) else { return Ok(WhyResult::default()) };
        let built = |effect: jobc_compiler::why::EffectLine| BuiltLine {
            file: BuiltFile { job: effect.job, target: effect.target, path: effect.path.into_string() },
            line: effect.line - 1,
            last: effect.last - 1,
            text: effect.text,
        };
        return Ok(WhyResult {
            fields: effects.fields.iter().map(|field| dotted(field.as_str())).collect(),
            lines: effects.lines.into_iter().map(built).collect(),
            causes: vec![],
        });
    };
    let output = outputs.iter().find(|it| it.job.name == file.job && it.job.target.name == file.target);
    let bytes = |path: &str| output?.artifacts.iter().find(|it| it.path == path).map(|it| &it.bytes[..]);
    let Some(text) = bytes(&file.path).map(String::from_utf8_lossy) else {
        return Err(format!("`{}` is not a file of this job", file.path));
    };
    let map = bytes(FILE).map(String::from_utf8_lossy).and_then(|text| SourceMap::parse(&text).ok());
    let parts = map.and_then(|mut map| map.artifacts.remove(&file.path)).unwrap_or_default();
    let mut causes: Vec<Cause> = vec![];
    let job_lines = Lines::new(job.path().as_str(), job.text());
    for found in causes_of_line(&parts, &Lines::new(&file.path, &text), line) {
        for cause in found.parts.into_iter().filter_map(|part| cause(part, &job, &job_lines)) {
            if !causes.contains(&cause) {
                causes.push(cause);
            }
        }
    }
    Ok(WhyResult { causes, ..WhyResult::default() })
}

fn cause(part: &Part, job: &Source, lines: &Lines) -> Option<Cause> {
    if let Some(spec) = &part.spec {
        let is_here = part.file.as_deref() == job.path().file_name();
        let line = part.start.filter(|_| is_here).map(|[line, _]| line - 1);
        let last = line.map(|line| lines.last_line_of(spec).map_or(line, |last| (last - 1).max(line)));
        return Some(Cause { text: dotted(spec), line, last });
    }
    let setting = part.target.as_ref().map(|setting| format!("setting `{}` of the target", dotted(setting)));
    setting.or_else(|| part.default.clone()).map(|text| Cause { text, line: None, last: None })
}

/// The job, and what a build writes.
fn build(
    session: &Session<'_>,
    uri: &Uri,
    target: Option<&String>,
) -> Result<(Source, Vec<compile::Output>), String> {
    let choice = choice(session, uri, target, None);
    with_plan(session, uri, &choice, |planned, sources, request, sink| {
        (sources.get(request.job).clone(), compile::build(sources, planned, request, sink))
    })
}

/// The number of lines that each role and each top-level field causes. The client shows them.
pub(crate) fn lenses(session: &Session<'_>, uri: &Uri, tree: &Tree) -> Vec<CodeLens> {
    let is_small = session
        .job(uri)
        .is_some_and(|job| job.plans().iter().map(|plan| plan.totals.instances).sum::<u64>() <= MAX_TASKS);
    let Some((job, outputs)) = is_small.then(|| build(session, uri, None).ok()).flatten() else {
        return vec![];
    };
    let mut fields: Vec<(Pointer, &Entry)> = vec![];
    for entry in tree.document.root.entries() {
        if entry.key == "roles" {
            let roles = tree.document.root.get("roles").map(Node::entries).unwrap_or_default();
            fields.extend(roles.iter().map(|role| (Pointer::ROOT.keys(["roles", &role.key]), role)));
        } else if matches!(entry.value.value, jobc_compiler::document::Value::Mapping(_)) {
            fields.push((Pointer::ROOT.key(&entry.key), entry));
        }
    }
    let pointers: Vec<Pointer> = fields.iter().map(|(pointer, _)| pointer.clone()).collect();
    let mut found = vec![];
    for ((_, entry), effects) in fields.into_iter().zip(effects_of(&job, &pointers, &outputs)) {
        let mut files: Vec<_> =
            effects.lines.iter().map(|line| (&line.job, &line.target, &line.path)).collect();
        files.dedup();
        if files.is_empty() {
            continue;
        }
        let at = tree.text.position(entry.key_span.start as usize);
        found.push(CodeLens {
            range: Range { start: at, end: at },
            command: Some(Command {
                title: format!("{}, {}", plural(files.len(), "file"), plural(effects.lines.len(), "line")),
                tooltip: Some("Lines of built files that this causes".to_owned()),
                command: "jobc.why".to_owned(),
                arguments: Some(vec![json!(uri), json!(at.line)]),
            }),
            data: None,
        });
    }
    found
}
