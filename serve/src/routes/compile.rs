//! What compiles a job file: it starts and changes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use hyper::StatusCode;
use jobc_process::Finished;
use jobc_schema::Scalar;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::call::Call;
use crate::endpoint::{Endpoint, handler, schema};
use crate::options::create_private;
use crate::own::{Own, document};
use crate::problem::Problem;
use crate::random;
use crate::reply::{Answer, json};
use crate::server::Server;
use crate::workspace::Base;

/// The bytes of files in an answer.
const MAX_FILES_BYTES: u64 = 16 << 20;

/// A job file, and how it is compiled.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct JobText {
    /// The job file.
    pub(crate) text: String,
    /// What the caller calls it; findings name `<stdin>`.
    #[serde(default, rename = "name")]
    _name: Option<String>,
    /// The upload that relative paths in it are below.
    #[serde(default)]
    pub(crate) upload: Option<String>,
    /// The directory that relative paths in it are below [default: the first one that is open].
    #[serde(default)]
    pub(crate) directory: Option<String>,
    /// Targets to build for [default: those of the targets file].
    #[serde(default)]
    pub(crate) targets: Vec<String>,
    /// Values of parameters.
    #[serde(default)]
    pub(crate) set: BTreeMap<String, Value>,
}

/// Two job files.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Two {
    /// The job file before.
    old: String,
    /// The job file after.
    new: String,
    /// The upload that relative paths in both are below.
    #[serde(default)]
    upload: Option<String>,
    /// The directory that relative paths in both are below [default: the first one that is open].
    #[serde(default)]
    directory: Option<String>,
    /// Targets to build for [default: those of the targets file].
    #[serde(default)]
    targets: Vec<String>,
}

/// A text, and what it is called.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Text {
    /// The text.
    text: String,
    /// Which of several jobs in it is meant.
    #[serde(default)]
    name: Option<String>,
}

/// A text.
#[derive(Debug, Serialize, JsonSchema)]
struct Formatted {
    /// The text.
    text: String,
}

/// The findings about a job file.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema")]
struct Findings {
    /// The version of this form.
    version: u32,
    /// The number of errors.
    errors: u64,
    /// The number of warnings.
    warnings: u64,
    /// The findings, as `jobc check --format json` prints them.
    diagnostics: Vec<Map<String, Value>>,
}

/// The files of a build.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema")]
struct Built {
    /// The files; none if there are errors.
    files: Vec<BuiltFile>,
    #[serde(flatten)]
    findings: Findings,
}

/// A file of a build.
#[derive(Serialize, JsonSchema)]
struct BuiltFile {
    /// The job, where there are several.
    job: Option<String>,
    /// The target.
    target: String,
    /// The path below the directory of the target.
    path: String,
    /// The text; null of a file that is not text, or is left out since there is too much.
    text: Option<String>,
    /// The bytes of the file.
    size: u64,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::compile("/check", "check", "Find what is wrong with a job file", handler!(check))
            .body(schema::<JobText>)
            .answer(schema::<Findings>),
        Endpoint::compile("/plan", "plan", "Resolve the plan of a job file", handler!(plan))
            .body(schema::<JobText>)
            .answer(schema::<Map<String, Value>>),
        Endpoint::compile("/build", "build", "Build the files of a job", handler!(build))
            .body(schema::<JobText>)
            .answer(schema::<Built>),
        Endpoint::compile("/diff", "diff", "Compare the plans of two job files", handler!(diff))
            .body(schema::<Two>)
            .answer(schema::<Map<String, Value>>),
        Endpoint::compile("/import", "import_job", "Convert a job of another tool", handler!(import))
            .body(schema::<Text>)
            .answer(schema::<Map<String, Value>>),
        Endpoint::compile("/fmt", "format_job", "Format a job file", handler!(format))
            .body(schema::<Text>)
            .answer(schema::<Formatted>),
    ]
}

/// Where a job file is compiled.
///
/// # Errors
/// The upload is not known, or the directory is not open.
pub(crate) async fn base(
    server: &Arc<Server>,
    upload: Option<&str>,
    directory: Option<&str>,
) -> Result<Base, Problem> {
    match (upload, directory) {
        (Some(_), Some(_)) => Err(Problem::bad_request("give either `upload` or `directory`")),
        (Some(id), None) => {
            let (own, id) = (Arc::clone(server), id.to_owned());
            let tree = tokio::task::spawn_blocking(move || own.uploads.tree(&id)).await;
            let tree = tree.map_err(|_| Problem::of_host("the upload cannot be unpacked"))??;
            Ok(server.workspace.own_directory(tree))
        }
        (None, directory) => server.workspace.directory(directory),
    }
}

impl JobText {
    /// Where it is compiled.
    pub(crate) async fn base(&self, server: &Arc<Server>) -> Result<Base, Problem> {
        base(server, self.upload.as_deref(), self.directory.as_deref()).await
    }

    /// Adds the options of a command, and the text as its input.
    pub(crate) fn add(&self, own: Own, server: &Server) -> Result<Own, Problem> {
        let own = self.targets.iter().fold(own, |own, target| own.option("--target", target));
        Ok(with_targets_file(with_values(own, &self.set)?, server).word("-").stdin(self.text.as_str()))
    }
}

/// Adds values of parameters.
///
/// # Errors
/// One is a list or an object, or has no name.
pub(crate) fn with_values(own: Own, set: &BTreeMap<String, Value>) -> Result<Own, Problem> {
    set.iter().try_fold(own, |own, (name, value)| {
        if name.is_empty() || name.contains('=') {
            return Err(Problem::bad_request("`set`: a parameter has a name without `=`"));
        }
        let scalar = serde_json::from_value::<Scalar>(value.clone());
        let text = match (scalar, value) {
            (_, Value::String(text)) => text.clone(),
            (Ok(_), value) => value.to_string(),
            (Err(_), _) => {
                return Err(Problem::bad_request(format!(
                    "`set.{name}`: write a text, a number or a boolean"
                )));
            }
        };
        Ok(own.word("--set").word(format!("{name}={text}")))
    })
}

/// Names the targets file, which is above the directory of an upload only by name.
pub(crate) fn with_targets_file(own: Own, server: &Server) -> Own {
    match &server.workspace.targets {
        Some(file) => own.option("--targets", file),
        None => own,
    }
}

async fn check(mut call: Call) -> Answer {
    let job: JobText = call.json().await?;
    let base = job.base(&call.server).await?;
    let own = job.add(Own::compile(&base, "check").word("--format=json"), &call.server)?;
    json(&own.json(&call.server.limits, &[1]).await?)
}

async fn plan(mut call: Call) -> Answer {
    let job: JobText = call.json().await?;
    let base = job.base(&call.server).await?;
    let own = job.add(Own::compile(&base, "plan").word("--format=json"), &call.server)?;
    json(&own.json(&call.server.limits, &[]).await?)
}

async fn build(mut call: Call) -> Answer {
    let job: JobText = call.json().await?;
    let base = job.base(&call.server).await?;
    let scratch = Scratch::new(&call.server)?;
    let own = Own::compile(&base, "build").word("--format=json").option("--output", scratch.path());
    let finished = job.add(own, &call.server)?.run(&call.server.limits).await?;
    let mut answer = findings(&finished)?;
    let directory = scratch.path().to_owned();
    let files = tokio::task::spawn_blocking(move || files(&directory)).await;
    let files: Vec<BuiltFile> = files.map_err(|_| Problem::of_host("the files cannot be read"))??;
    answer.insert("files".to_owned(), serde_json::to_value(files).unwrap_or_default());
    json(&answer)
}

async fn diff(mut call: Call) -> Answer {
    let two: Two = call.json().await?;
    let base = base(&call.server, two.upload.as_deref(), two.directory.as_deref()).await?;
    let diff = compare(&call.server, base, &two.old, &two.new, &two.targets).await?;
    json(&serde_json::json!({"diff": diff, "diagnostics": []}))
}

/// What `jobc diff` says of two job files.
///
/// # Errors
/// One of them has errors.
pub(crate) async fn compare(
    server: &Arc<Server>,
    mut base: Base,
    old: &str,
    new: &str,
    targets: &[String],
) -> Result<Value, Problem> {
    let scratch = Scratch::new(server)?;
    base.permitted.push(scratch.path().to_owned());
    let before = scratch.path().join("before.yaml");
    std::fs::write(&before, old)?;
    let own = Own::compile(&base, "diff").words(&["--format=json", "--job=-"]);
    let own = targets.iter().fold(own, |own, target| own.option("--target", target));
    let own = with_targets_file(own, server).word(before.into_string()).stdin(new);
    own.json(&server.limits, &[1]).await
}

async fn import(mut call: Call) -> Answer {
    let Text { text, name } = call.json().await?;
    let base = call.server.workspace.directory(None)?;
    let own = Own::compile(&base, "import").word("--format=json");
    let own = name.iter().fold(own, |own, name| own.option("--name", name)).word("-").stdin(text);
    let finished = own.run(&call.server.limits).await?;
    if finished.code != Some(0) {
        return Err(Problem::of_command(&finished));
    }
    let mut answer = findings(&finished)?;
    answer.insert("text".to_owned(), finished.stdout.into());
    json(&answer)
}

async fn format(mut call: Call) -> Answer {
    let Text { text, .. } = call.json().await?;
    let base = call.server.workspace.directory(None)?;
    let finished = Own::compile(&base, "fmt").word("-").stdin(text).run(&call.server.limits).await?;
    if finished.code != Some(0) {
        return Err(Problem::of_command(&finished));
    }
    json(&Formatted { text: finished.stdout })
}

/// The findings that a command printed beside its result.
fn findings(finished: &Finished) -> Result<Map<String, Value>, Problem> {
    for text in [&finished.stderr, &finished.stdout] {
        let mut documents = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        if let Some(Ok(Value::Object(found))) = documents.next()
            && found.contains_key("diagnostics")
        {
            return Ok(found);
        }
    }
    match document(finished, &[]) {
        Ok(Value::Object(found)) => Ok(found),
        Ok(_) => Err(Problem::new(StatusCode::BAD_GATEWAY, "the command printed no findings")),
        Err(problem) => Err(problem),
    }
}

/// The files below a directory, by their paths.
fn files(directory: &Utf8Path) -> std::io::Result<Vec<BuiltFile>> {
    let mut found = vec![];
    let mut left = MAX_FILES_BYTES;
    let mut directories = vec![directory.to_owned()];
    while let Some(next) = directories.pop() {
        let Ok(entries) = next.read_dir_utf8() else { continue };
        for entry in entries {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                directories.push(entry.path().to_owned());
            } else if kind.is_file() {
                let size = entry.metadata()?.len();
                let text =
                    if size <= left { String::from_utf8(std::fs::read(entry.path())?).ok() } else { None };
                left = left.saturating_sub(text.as_ref().map_or(0, |text| text.len() as u64));
                let path = entry.path().strip_prefix(directory).unwrap_or(entry.path());
                found.push(BuiltFile::new(directory, path, text, size));
            }
        }
    }
    found.sort_by(|a, b| (&a.job, &a.target, &a.path).cmp(&(&b.job, &b.target, &b.path)));
    Ok(found)
}

impl BuiltFile {
    /// A file below an output directory: `TARGET/…`, or `JOB/TARGET/…` where there are several jobs.
    fn new(directory: &Utf8Path, path: &Utf8Path, text: Option<String>, size: u64) -> Self {
        let mut parts: Vec<&str> = path.iter().collect();
        let is_target = parts.first().is_some_and(|first| directory.join(first).join("plan.json").is_file());
        let job = (!is_target && parts.len() > 2).then(|| parts.remove(0).to_owned());
        let target = if parts.len() > 1 { parts.remove(0).to_owned() } else { String::new() };
        Self { job, target, path: parts.join("/"), text, size }
    }
}

/// A directory that is removed with this.
pub(crate) struct Scratch(Utf8PathBuf);

impl Scratch {
    pub(crate) fn new(server: &Server) -> Result<Self, Problem> {
        let path = server.options.directories.cache.join("scratch").join(random::token()?);
        create_private(&path)?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Utf8Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
