//! Tests one job file.

use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::compile::{Output, build, plan};
use jobc_compiler::diagnostic::render::{Format, render};
use jobc_compiler::diagnostic::{Diagnostic, Severity, Sink};
use jobc_compiler::source::Sources;
use jobc_compiler::why::source_map;

use crate::args::TestArgs;
use crate::changes::compare::{FileChange, changes};
use crate::changes::target_files::TargetFiles;
use crate::commands::build::OutputDirectory;
use crate::input::{Input, InputError, reason, relative};
use crate::inputs;
use crate::output::write;
use crate::terminal;

use super::cache::{self, Cache};
use super::golden;

/// The result of testing a job file.
#[derive(Default)]
pub(super) struct CaseResult {
    /// The job file.
    pub file: Utf8PathBuf,
    /// The name of its directory with golden files.
    pub golden: String,
    /// How long the test took.
    pub took: Duration,
    /// Its jobs for their targets.
    pub targets: Vec<TargetResult>,
    /// Golden files of jobs or targets that the job file no longer has: paths below the golden directory.
    pub obsolete: Vec<Utf8PathBuf>,
    /// Why the job cannot be compiled, or its golden files not be read or written.
    pub error: Option<CaseError>,
    /// Whether the differences were accepted.
    pub accepted: bool,
    /// Whether it was not compiled because nothing has changed since it last passed.
    pub is_cached: bool,
}

impl CaseResult {
    /// Whether something differs from the golden files.
    pub(super) fn differs(&self) -> bool {
        !self.obsolete.is_empty() || self.targets.iter().any(|target| !matches!(target.state, State::Same))
    }
}

/// Why a job could not be tested.
pub(super) struct CaseError {
    /// In one line.
    pub summary: String,
    /// For people, with excerpts.
    pub text: String,
}

/// A job for a target.
pub(super) struct TargetResult {
    pub job: String,
    pub target: String,
    /// How many files were compiled.
    pub files: usize,
    pub state: State,
}

/// How files compare with the golden files.
pub(super) enum State {
    Same,
    /// There are no golden files.
    New,
    Changed(Vec<FileChange>),
}

impl State {
    pub(super) fn as_str(&self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::New => "new",
            Self::Changed(_) => "changed",
        }
    }
}

pub(super) fn run(file: &Utf8Path, args: &TestArgs, cache: Option<&Cache>) -> CaseResult {
    let start = Instant::now();
    let mut result = CaseResult {
        file: file.strip_prefix("./").unwrap_or(file).to_owned(),
        golden: args.golden.clone(),
        ..CaseResult::default()
    };
    if let Some(targets) = cache.and_then(|cache| cache.get(args, file)) {
        let same = |(job, target, files)| TargetResult { job, target, files, state: State::Same };
        result.targets = targets.into_iter().map(same).collect();
        result.is_cached = true;
    } else {
        let before = cache.and_then(|_| cache::golden(args, file));
        let (tested, inputs) = inputs::record(|| test(args, &mut result));
        result.error = tested.err();
        if let Some(cache) = cache.filter(|_| result.error.is_none() && !result.differs()) {
            let known = |it: &TargetResult| (it.job.clone(), it.target.clone(), it.files);
            cache.put(args, file, inputs, before, result.targets.iter().map(known).collect());
        }
    }
    result.took = start.elapsed();
    result
}

fn test(args: &TestArgs, result: &mut CaseResult) -> Result<(), CaseError> {
    let (directory, outputs) = compile(args, &result.file)?;
    let place = OutputDirectory::beside(&directory, &args.golden);
    for output in &outputs {
        result.targets.push(compare(output, &place)?);
    }
    if args.target.is_empty() {
        result.obsolete = golden::obsolete(&directory, &args.golden, &result.file, &outputs);
    }
    if args.accept && result.differs() {
        for (output, compared) in outputs.iter().zip(&result.targets) {
            let directory = place.directory(&compared.job, &compared.target);
            write(&directory, &output.artifacts).map_err(|error| cannot_write(&directory, &error))?;
        }
        for path in &result.obsolete {
            let path = directory.join(&args.golden).join(path);
            golden::remove(&path).map_err(|error| cannot_write(&path, &error))?;
        }
        result.accepted = true;
    }
    Ok(())
}

fn cannot_write(path: &Utf8Path, error: &std::io::Error) -> CaseError {
    let summary = format!("cannot write `{}`: {}", crate::input::shorten(path), reason(error));
    CaseError { text: format!("{summary}\n"), summary }
}

impl From<InputError> for CaseError {
    fn from(InputError(summary): InputError) -> Self {
        Self { text: format!("{summary}\n"), summary }
    }
}

/// Compiles a job file; its directory and what a build would write into the golden directory.
fn compile(args: &TestArgs, file: &Utf8Path) -> Result<(Utf8PathBuf, Vec<Output>), CaseError> {
    let job = args.of_job(file.to_owned());
    let mut input = Input::read(&job)?;
    let place = OutputDirectory::beside(&input.directory, &args.golden);
    let mut sources = std::mem::take(&mut input.sources);
    let to_job = |job: &str| relative(&input.directory, &place.directory(job, "target"));
    let request = input.request(&job, &to_job);
    let mut sink = Sink::new();
    let outputs = plan(&mut sources, &request, &mut sink)
        .map(|planned| build(&sources, planned, &request, &mut sink))
        .unwrap_or_default();
    if sink.has_errors() {
        return Err(of_findings(&sources, &sink.finish()));
    }
    Ok((input.directory, outputs))
}

fn of_findings(sources: &Sources, findings: &[Diagnostic]) -> CaseError {
    let errors: Vec<Diagnostic> =
        findings.iter().filter(|finding| finding.severity == Severity::Error).cloned().collect();
    let summary = render(Format::Short, sources, &errors, &terminal::style());
    let first = summary.lines().next().unwrap_or_default().to_owned();
    let more = errors.len().saturating_sub(1);
    let summary = if more > 0 { format!("{first} (and {more} more)") } else { first };
    CaseError { summary, text: render(Format::Text, sources, &errors, &terminal::style()) }
}

fn compare(output: &Output, place: &OutputDirectory) -> Result<TargetResult, CaseError> {
    let now = TargetFiles {
        job: output.job.name.clone(),
        target: output.job.target.name.clone(),
        artifacts: output.artifacts.clone(),
    };
    let golden = now.read(Some(&place.directory(&now.job, &now.target)))?;
    let state = if golden.artifacts.is_empty() {
        State::New
    } else if is_same(&golden, &now) {
        State::Same
    } else {
        State::Changed(changes(std::slice::from_ref(&golden), std::slice::from_ref(&now)))
    };
    Ok(TargetResult { job: now.job, target: now.target, files: now.artifacts.len(), state })
}

/// Whether the same paths have the same bytes. A source map does not count: it changes with every line above a field.
fn is_same(golden: &TargetFiles, now: &TargetFiles) -> bool {
    let sorted = |files: &TargetFiles| {
        let files = files.artifacts.iter().filter(|file| file.path != source_map::FILE);
        let mut files: Vec<_> = files.map(|file| (file.path.clone(), file.bytes.clone())).collect();
        files.sort();
        files
    };
    sorted(golden) == sorted(now)
}
