//! `jobc import DIRECTORY`: every file of another tool below a directory, as a table.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::diagnostic::{Diagnostic, Severity, Sink};
use jobc_compiler::import::{Format, Selection, format_of, job_names, text_format};
use jobc_compiler::parse::parse;
use jobc_compiler::rewrite::{RewriteResult, rewrite};
use jobc_compiler::source::{Source, Sources};
use jobc_schema::plural;
use serde_json::{Value, json};

use super::write;
use crate::args::{FormatArg, ImportArgs};
use crate::disk::DiskFiles;
use crate::input::{read, relative};
use crate::outcome::Outcome;
use crate::table::Table;
use crate::terminal;

/// The maximum number of files that are looked at.
const MAX_FILES: usize = 20_000;
/// The maximum size of a file of another tool.
const MAX_BYTES: u64 = 4 << 20;
/// The maximum depth of directories.
const MAX_DEPTH: usize = 32;

/// What became of a job of a file.
struct Row {
    file: Utf8PathBuf,
    /// Its name, where the file has several.
    name: Option<String>,
    format: &'static str,
    job: Option<String>,
    targets: Option<String>,
    findings: Vec<Value>,
    errors: usize,
    warnings: usize,
}

/// Imports every file below a directory.
pub(super) fn run(import: &ImportArgs, directory: &Utf8Path, format: FormatArg) -> Outcome {
    let of_one = [
        ("explain", import.explain),
        ("file", !import.selection.file.is_empty()),
        ("targets", import.targets.is_some()),
        ("name", import.selection.name.is_some()),
        ("sbatch-env", import.sbatch_env),
    ];
    if let Some((option, _)) = of_one.iter().find(|(_, given)| *given) {
        terminal::eprint(&format!("jobc: `--{option}` is for one file; `{directory}` is a directory\n"));
        return Outcome::UsageError;
    }
    let mut files = Vec::new();
    walk(directory, 0, &mut files);
    files.sort();
    let rows: Vec<Row> = files.iter().flat_map(|file| imported(file)).collect();
    if rows.is_empty() {
        terminal::eprint(&format!(
            "jobc: `{directory}` has no file of another tool; `jobc import --list` lists the formats\n"
        ));
        return Outcome::UsageError;
    }
    let mut written = Vec::new();
    for row in &rows {
        let path = import.output.as_ref().map(|output| job_path(output, directory, row));
        if let (Some(path), Some(job)) = (&path, &row.job)
            && let Err(outcome) = write_job(path, job, row.targets.as_deref(), import.force)
        {
            return outcome;
        }
        written.push(path.filter(|_| row.job.is_some()));
    }
    if format == FormatArg::Json {
        let jobs: Vec<Value> =
            rows.iter().zip(&written).map(|(row, path)| row.json(directory, path.as_ref())).collect();
        terminal::print(&format!("{:#}\n", json!({"version": 1, "jobs": jobs})));
    } else {
        print(&rows, directory);
    }
    if rows.iter().any(|row| row.job.is_none()) { Outcome::Errors } else { Outcome::Success }
}

impl Row {
    fn json(&self, directory: &Utf8Path, path: Option<&Utf8PathBuf>) -> Value {
        json!({
            "file": relative(&self.file, directory),
            "name": self.name,
            "format": self.format,
            "converted": self.job.is_some(),
            "written": path,
            "findings": self.findings,
        })
    }

    /// What there is to know of it, in a few words.
    fn summary(&self) -> String {
        let first = |severity: &str| {
            let found = self.findings.iter().find(|found| found["severity"] == severity)?;
            Some(format!("line {}: {}", found["line"], found["message"].as_str().unwrap_or_default()))
        };
        match (self.errors, self.warnings) {
            (0, 0) => String::new(),
            (0, 1) => first("warning").unwrap_or_default(),
            (0, count) => plural(count, "warning"),
            (1, _) => first("error").unwrap_or_default(),
            (count, _) => {
                format!("{}, and {}", first("error").unwrap_or_default(), plural(count - 1, "more error"))
            }
        }
    }
}

fn print(rows: &[Row], directory: &Utf8Path) {
    let mut table = Table::new(["FILE", "FORMAT", "RESULT", "FINDINGS"]);
    for row in rows {
        let file = relative(&row.file, directory);
        let file = row.name.as_ref().map_or(file.to_string(), |name| format!("{file} ({name})"));
        let result = if row.job.is_some() { "converted" } else { "refused" };
        table.row([file, row.format.to_owned(), result.to_owned(), row.summary()]);
    }
    terminal::print(&table.render(terminal::columns_of_stdout()));
    let converted = rows.iter().filter(|row| row.job.is_some()).count();
    terminal::eprint(&format!("{converted} of {} are converted\n", plural(rows.len(), "job")));
}

/// The files below a directory, without hidden ones; links are not followed.
fn walk(directory: &Utf8Path, depth: usize, files: &mut Vec<Utf8PathBuf>) {
    let Ok(entries) = directory.read_dir_utf8() else { return };
    for entry in entries.flatten() {
        // `.devcontainer/devcontainer.json`, `.devcontainer.json`
        let is_hidden = entry.file_name().starts_with('.') && !entry.file_name().starts_with(".devcontainer")
            || entry.file_name() == "node_modules";
        let Ok(kind) = entry.file_type() else { continue };
        if files.len() >= MAX_FILES || is_hidden {
            continue;
        }
        if kind.is_dir() && depth < MAX_DEPTH {
            walk(entry.path(), depth + 1, files);
        } else if kind.is_file() && entry.metadata().is_ok_and(|metadata| metadata.len() <= MAX_BYTES) {
            files.push(entry.into_path());
        }
    }
}

/// What becomes of the jobs of a file; nothing of one in another format.
fn imported(file: &Utf8Path) -> Vec<Row> {
    let extension = file.extension().unwrap_or_default().to_ascii_lowercase();
    let is_document = matches!(extension.as_str(), "yaml" | "yml" | "json");
    let is_script =
        matches!(extension.as_str(), "" | "sh" | "bash" | "sbatch" | "slurm" | "job" | "sub" | "batch");
    let changes_another = file.file_name().is_some_and(|name| name.contains(".override.y"))
        && file.with_file_name(file.file_name().unwrap_or_default().replace(".override", "")).exists();
    if !is_document && !is_script || changes_another {
        return vec![];
    }
    let Ok(text) = read(file) else { return vec![] };
    let mut sources = Sources::new();
    let id = sources.add(Source::new(file, text.as_str()));
    let of_text =
        text_format(sources.get(id)).filter(|found| *found != Format::Sbatch || text.starts_with("#!"));
    let document =
        if is_document && of_text.is_none() { parse(&sources, id, &mut Sink::new()) } else { None };
    let Some(found) = of_text.or_else(|| document.as_ref().and_then(format_of)) else { return vec![] };
    let names = document.as_ref().map(job_names).unwrap_or_default();
    let names: Vec<Option<String>> =
        if names.is_empty() { vec![None] } else { names.into_iter().map(Some).collect() };
    names.into_iter().map(|name| one(file, &text, found, name)).filter(is_a_job).collect()
}

/// Whether a row is about a job: a file of Kubernetes without pods is none.
fn is_a_job(row: &Row) -> bool {
    !row.findings.iter().any(|found| found["code"] == "J0122")
}

fn one(file: &Utf8Path, text: &str, format: Format, name: Option<String>) -> Row {
    let mut sources = Sources::new();
    let id = sources.add(Source::new(file, text));
    let mut sink = Sink::new();
    let files = DiskFiles::new(file.parent().unwrap_or(Utf8Path::new(".")));
    let selection = Selection { name: name.clone(), is_sketch: true, ..Selection::default() };
    let (result, _) = rewrite(&mut sources, id, &files, &selection, &mut sink);
    let found = sink.finish();
    let count = |severity: Severity| found.iter().filter(|found| found.severity == severity).count();
    let (job, targets) = match result {
        RewriteResult::Job(job, targets) => (Some(job), targets),
        _ => (None, None),
    };
    Row {
        file: file.to_owned(),
        name,
        format: name_of(format),
        job,
        targets,
        errors: count(Severity::Error),
        warnings: count(Severity::Warning),
        findings: found.iter().map(|found| finding(found, &sources)).collect(),
    }
}

fn name_of(format: Format) -> &'static str {
    match format {
        Format::V1 | Format::V2 => "openpai",
        Format::Sbatch => "sbatch",
        Format::DockerRun => "docker-run",
        Format::Compose => "compose",
        Format::Kubernetes => "kubernetes",
        Format::Skypilot => "skypilot",
        Format::Torchx => "torchx",
        Format::Devcontainer => "devcontainer",
    }
}

fn finding(found: &Diagnostic, sources: &Sources) -> Value {
    let span = found.labels.first().and_then(|label| label.place.span());
    let line = span.map(|span| sources.get(span.source).line_column(span.start).line);
    let severity = match found.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    json!({ "code": found.code.as_str(), "severity": severity, "line": line, "message": found.message })
}

/// Where a job file goes: a directory of its own, as its `targets.yaml` lies next to it.
fn job_path(output: &Utf8Path, directory: &Utf8Path, row: &Row) -> Utf8PathBuf {
    let mut path = output.join(relative(&row.file, directory).with_extension(""));
    if let Some(name) = &row.name {
        path.push(name);
    }
    path.join("job.yaml")
}

fn write_job(path: &Utf8Path, job: &str, targets: Option<&str>, force: bool) -> Result<(), Outcome> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(|error| {
            terminal::eprint(&format!("jobc: cannot create `{parent}`: {}\n", crate::input::reason(&error)));
            Outcome::SystemError
        })?;
    }
    write(path, job, force)?;
    targets.map_or(Ok(()), |text| write(&path.with_file_name("targets.yaml"), text, force))
}
