//! `jobc build`: writes everything that a job needs to run at its targets.

mod explained;

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::compile::{Output, build_with, plan};
use jobc_compiler::diagnostic::Sink;
use jobc_compiler::lower::OnRefusal;
use jobc_compiler::provenance;
use jobc_schema::plan::{JobPlan, RolePlan};
use similar::TextDiff;

use crate::args::{BuildArgs, FormatArg};
use crate::input::{Input, normalize, relative, shorten};
use crate::outcome::Outcome;
use crate::output::{WriteResult, list, write};
use crate::report::{self, Row};
use crate::settings::default_target;
use crate::{source_state, terminal, watch};

/// Writes bills of materials of the images of jobs to a directory. The image store is the runtime's.
type WriteSboms = fn(&[&JobPlan], &Utf8Path) -> Outcome;

pub(crate) fn run(build_args: &BuildArgs, format: FormatArg, write_sboms: WriteSboms) -> Outcome {
    if !build_args.watch {
        return run_once(build_args, format, write_sboms);
    }
    if let Err(why) = super::reject_watched_stdin(build_args.job.job.iter()) {
        return super::report_input_error(&why);
    }
    watch::repeat(|| run_once(build_args, format, write_sboms), shorten)
}

fn run_once(build_args: &BuildArgs, format: FormatArg, write_sboms: WriteSboms) -> Outcome {
    let mut input = match Input::read(&build_args.job) {
        Ok(input) => input,
        Err(why) => return super::report_input_error(&why),
    };
    let mut place = match OutputDirectory::new(build_args.output.as_deref(), &input.directory) {
        Ok(place) => place,
        Err(why) => return super::report_input_error(&why),
    };
    let mut sink = Sink::new();
    let mut sources = std::mem::take(&mut input.sources);
    let not_yet = |_: &str| Utf8PathBuf::from("../../..");
    let mut request = input.request(&build_args.job, &not_yet);
    request.default_target = default_target();
    let planned = plan(&mut sources, &request, &mut sink);
    let mut outputs = vec![];
    let mut is_default = false;
    if let Some(planned) = planned {
        is_default = planned.on_refusal == OnRefusal::Skip;
        place.several = planned.jobs.iter().any(|job| !job.matrix.is_empty());
        let to_job = |job: &str| relative(&input.directory, &place.directory(job, "target"));
        let provenance = build_args.provenance.then(|| source_state::provenance(&input.directory));
        let request = input.request(&build_args.job, &to_job);
        outputs = build_with(provenance.as_ref(), &sources, planned, &request, &mut sink);
    }
    let outcome = report::findings(&sources, sink, format, build_args.stdout);
    if outcome != Outcome::Success {
        return outcome;
    }
    let outcome = if build_args.explain {
        explained::print(&outputs)
    } else if build_args.stdout {
        print_files(&outputs, !build_args.job.backend.is_empty());
        Outcome::Success
    } else if build_args.check {
        compare(&outputs, &place, build_args)
    } else {
        write_all(&outputs, &place, format, is_default)
    };
    let outcome = match &build_args.sbom {
        Some(directory) if outcome == Outcome::Success => {
            write_sboms(&outputs.iter().map(|output| &output.job).collect::<Vec<_>>(), directory)
        }
        _ => outcome,
    };
    if !build_args.watch {
        // The process exits here: dropping millions of values first would take a tenth of the time of a large build.
        std::mem::forget(outputs);
    }
    outcome
}

/// Where outputs are written.
pub(super) struct OutputDirectory {
    /// The directory of `-o`, absolute.
    output_option: Option<Utf8PathBuf>,
    /// `out` next to the job file, absolute; for tests that of the golden files.
    default_directory: Utf8PathBuf,
    /// Whether `-o` gets one directory per job, because a matrix makes several.
    pub(super) several: bool,
}

impl OutputDirectory {
    pub(super) fn new(
        given: Option<&Utf8Path>,
        job_directory: &Utf8Path,
    ) -> Result<Self, crate::input::InputError> {
        let here = || crate::input::absolute(Utf8Path::new("."));
        let given = given.map(|path| Ok(normalize(&here()?.join(path)))).transpose()?;
        if let Some(path) = given.as_deref().filter(|path| path.exists() && !path.is_dir()) {
            return Err(crate::input::InputError(format!(
                "`-o {}` is a file, and a build writes directories; name a directory, or use `--stdout`",
                shorten(path)
            )));
        }
        Ok(Self { output_option: given, default_directory: job_directory.join("out"), several: false })
    }

    /// A directory next to the job file, which has a directory per job.
    pub(super) fn beside(job_directory: &Utf8Path, name: &str) -> Self {
        Self { output_option: None, default_directory: job_directory.join(name), several: false }
    }

    /// The directory of one job for one target.
    pub(super) fn directory(&self, job: &str, target: &str) -> Utf8PathBuf {
        match &self.output_option {
            Some(given) if self.several => given.join(job).join(target),
            Some(given) => given.join(target),
            None => self.default_directory.join(job).join(target),
        }
    }
}

/// Maximum number of jobs of a matrix that a build lists.
const MAX_JOBS: usize = 8;

/// `is_default` says that the target was not chosen.
fn write_all(outputs: &[Output], place: &OutputDirectory, format: FormatArg, is_default: bool) -> Outcome {
    let mut rows = Vec::new();
    let mut jobs: Vec<&JobPlan> = Vec::new();
    for output in outputs {
        // Those of a job are next to each other.
        if jobs.last().is_none_or(|last| last.name != output.job.name) {
            jobs.push(&output.job);
        }
        let target = &output.job.target.name;
        let directory = place.directory(&output.job.name, target);
        let written = match write(&directory, &output.artifacts) {
            Ok(written) => written,
            Err(error) => {
                terminal::eprint(&report::cannot_write(&shorten(&directory), &error));
                return Outcome::SystemError;
            }
        };
        let unchanged = if written == WriteResult::Unchanged { " (unchanged)" } else { "" };
        if jobs.len() > MAX_JOBS {
            continue;
        }
        rows.extend(output.backends.iter().map(|(backend, files)| Row {
            target: target.clone(),
            backend: backend.as_str(),
            files: *files,
            place: format!("{}{unchanged}", shorten(&directory.join(backend.as_str()))),
        }));
    }
    if matches!(format, FormatArg::Text) {
        terminal::print(&report::table(&rows));
        let more = jobs.len().saturating_sub(MAX_JOBS);
        if more > 0 {
            terminal::print(&format!("and {more} more jobs\n"));
        }
        for job in jobs.iter().take(MAX_JOBS) {
            terminal::print(&report::totals(job));
        }
        if more > 0 {
            terminal::print(&report::totals_of_matrix(&jobs));
        }
        print_docker_commands(outputs);
        if is_default {
            terminal::print(
                "built for this host; for others: `--target kubernetes`, `--target openpai`, or a targets file\n",
            );
        }
    }
    Outcome::Success
}

/// Maximum number of lines about Docker that a build prints; a job may have thousands of roles.
const MAX_DOCKER_LINES: usize = 8;

/// Prints the GPU options of `docker run` for each role with GPUs of a target with the oci backend.
fn print_docker_commands(outputs: &[Output]) {
    let of_machine = |output: &&Output| output.job.target.settings.is_host();
    let Some(output) = outputs.iter().find(of_machine) else { return };
    let with_gpus = |role: &&RolePlan| role.gpus().is_some();
    let names = output.job.roles.iter().filter(with_gpus).filter_map(|role| {
        Some(format!("{}: {}\n", role.name, jobc_compiler::docker::gpu_options(&output.job, role)?))
    });
    let lines: Vec<String> = names.take(MAX_DOCKER_LINES).collect();
    if !lines.is_empty() {
        terminal::print(
            "the same GPUs with Docker (options of `docker run`; `jobc plan --docker` prints all of it):\n",
        );
        for line in &lines {
            terminal::print(&format!("  {line}"));
        }
        terminal::print(
            "  `jobc run` assigns free GPUs of the host; with Docker, choose the numbers yourself\n",
        );
    }
}

/// The directory of the outputs, if none of them exists: a diff would print every file whole.
fn never_built(outputs: &[Output], place: &OutputDirectory) -> Option<Utf8PathBuf> {
    let directory = |output: &Output| place.directory(&output.job.name, &output.job.target.name);
    let first = directory(outputs.first()?);
    let absent = outputs.iter().all(|output| !directory(output).exists());
    let above = first.parent().filter(|_| outputs.len() > 1).unwrap_or(&first);
    absent.then(|| shorten(above))
}

/// Compares the outputs with the files on disk and prints the differences.
fn compare(outputs: &[Output], place: &OutputDirectory, args: &BuildArgs) -> Outcome {
    if let Some(nothing) = never_built(outputs, place) {
        let job = args.job.job.as_ref().map_or(String::new(), |job| format!(" {job}"));
        terminal::eprint(&format!(
            "jobc: nothing is built in `{nothing}` yet; run `jobc build{job}` to write it\n"
        ));
        return Outcome::Errors;
    }
    let mut differs = false;
    for output in outputs {
        let directory = place.directory(&output.job.name, &output.job.target.name);
        let mut on_disk =
            if directory.is_dir() { list(&directory).unwrap_or_default() } else { BTreeSet::new() };
        for artifact in &output.artifacts {
            on_disk.remove(&artifact.path);
            let path = directory.join(&artifact.path);
            let old = std::fs::read(&path).map(|bytes| {
                let plain = (!args.provenance).then(|| provenance::without(&artifact.path, &bytes)).flatten();
                plain.unwrap_or(bytes)
            });
            if old.as_ref().is_ok_and(|old| *old == artifact.bytes) {
                continue;
            }
            differs = true;
            let short = shorten(&path);
            let before = old.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
            let after = String::from_utf8_lossy(&artifact.bytes);
            let diff = TextDiff::from_lines(before.as_ref(), after.as_ref());
            let from = if old.is_ok() { short.as_str() } else { "/dev/null" };
            terminal::print(&diff.unified_diff().header(from, short.as_str()).to_string());
        }
        for gone in on_disk {
            differs = true;
            terminal::print(&format!("only on disk: {}\n", shorten(&directory.join(gone))));
        }
    }
    if differs {
        terminal::eprint("jobc: the files on disk differ from the job; run `jobc build` to write them\n");
        return Outcome::Errors;
    }
    Outcome::Success
}

/// Prints the files: YAML documents one after another, so that `kubectl apply -f -` can read them.
fn print_files(outputs: &[Output], only_backends: bool) {
    let several = outputs.len() > 1;
    for output in outputs {
        let own = |path: &Utf8Path| only_backends && matches!(path.as_str(), "plan.json" | "sourcemap.json");
        for artifact in output.artifacts.iter().filter(|a| !own(&a.path)) {
            let path = if several {
                Utf8Path::new(&output.job.name).join(&output.job.target.name).join(&artifact.path)
            } else {
                artifact.path.clone()
            };
            let text = String::from_utf8_lossy(&artifact.bytes);
            match path.extension() {
                Some("yaml") => terminal::print(&format!("---\n# {path}\n{text}")),
                _ if only_backends && artifact.path.starts_with("kubernetes") => {
                    terminal::eprint(&format!("jobc: left out of the YAML stream: {path}\n"));
                }
                _ => terminal::print(&format!("==> {path} <==\n{text}")),
            }
        }
    }
}
