//! Compiles a job file to the files to run: every job of its matrix, for one target.

use std::cell::OnceCell;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::adjust::Adjustments;
use jobc_compiler::compile::{self, build, plan};
use jobc_compiler::diagnostic::render::{render, summary};
use jobc_compiler::diagnostic::{Severity, Sink};
use jobc_compiler::source::{Source, Sources};
use jobc_gpu::Host;
use jobc_gpu::nvml::Freshness;
use jobc_gpu::step::usable_inventory;
use jobc_job::admission::ledger::Ledger;
use jobc_job::admission::ports;
use jobc_schema::BackendName;
use jobc_schema::plan::ImageSource;
use jobc_schema::shell::quote;
use jobc_sys::error::{Error, Kind, Result};

use super::built_plan::{BuiltJob, BuiltPlan};
use super::resume::Numbers;
use crate::args::{FormatArg, JobArgs};
use crate::input::{Input, InputError, STDIN, find_targets};
use crate::outcome::Outcome;
use crate::report;
use crate::runtime::args::run::RunArgs;
use crate::runtime::commands::run::command::COMMAND;
use crate::runtime::signatures;
use crate::settings::default_target;
use crate::terminal;

/// Where a job file comes from.
pub(super) enum JobSource {
    /// A path on the command line; none for that of the current directory.
    File(Option<Utf8PathBuf>),
    /// The job file of a command.
    Text(String),
}

/// Compiles a job file; none if it has errors, which are printed. Combinations of `numbers` keep their numbers.
pub(super) fn compile(
    args: &RunArgs,
    from: JobSource,
    format: FormatArg,
    ledger: &Ledger,
    numbers: Numbers,
) -> Result<Option<BuiltPlan>> {
    let (path, text) = match from {
        JobSource::File(path) => (path, None),
        JobSource::Text(text) => (None, Some(Source::new(COMMAND, text))),
    };
    let job = job_args(args, path);
    let input = match text {
        Some(text) => Input::with_text(text, &job),
        None => Input::read(&job),
    };
    let mut input = input.map_err(|InputError(why)| Error::new(Kind::Config, why))?;
    let mut sink = Sink::new();
    let source = absolute(&input).into();
    let mut sources = std::mem::take(&mut input.sources);
    // The bundles are not run next to the job file, so paths to it are absolute.
    let to_job = |_: &str| input.directory.clone();
    let mut request = input.request(&job, &to_job);
    request.run_here = true;
    request.default_target = default_target();
    // The GPUs are detected once for all jobs of a matrix; they are assigned later, under the lock of the ledger.
    let found = OnceCell::new();
    let look = || found.get_or_init(|| usable_inventory(&Host::here(), Freshness::Facts)).to_target_gpus();
    request.gpus_here = Some(&look);
    request.adjustments = Adjustments { scale: args.scale.clone(), no_gpu: args.no_gpu, numbers };
    let mut planned = plan(&mut sources, &request, &mut sink);
    if let Some(job) =
        planned.iter().flat_map(|planned| &planned.jobs).find(|job| job.target.settings.ssh.is_some())
    {
        let name = &job.target.name;
        let error = Error::new(Kind::Config, format!("the target `{name}` is another machine"));
        return Err(error.help(format!("submit the job to it: `jobc submit --target {name}`")));
    }
    let scaled = planned.as_mut().map(|planned| std::mem::take(&mut planned.scaled)).unwrap_or_default();
    let jobs = planned.iter_mut().flat_map(|planned| &mut planned.jobs);
    let reserved_ports =
        jobs.filter_map(|job| ports::choose_for(job, ledger).transpose()).collect::<Result<_>>()?;
    for job in planned.iter_mut().flat_map(|planned| &mut planned.jobs) {
        // An image block is built from its generated Dockerfile.
        if job.images.values().any(|image| matches!(image.source, ImageSource::Build { .. })) {
            request.only_backends = vec![BackendName::Oci, BackendName::Dockerfile];
            if !job.target.settings.backends.contains(&BackendName::Dockerfile) {
                job.target.settings.backends.push(BackendName::Dockerfile);
            }
        }
    }
    if let Some(planned) = &planned {
        let targets = job.targets.clone().or_else(|| find_targets(&input.directory));
        let findings = signatures::findings(&planned.jobs, targets.as_deref().and_then(Utf8Path::parent))?;
        if !findings.is_empty() {
            compile::report(&sources, planned, findings, &mut sink);
            report::findings(&sources, sink, format, true);
            return Ok(None);
        }
    }
    let outputs = planned.map(|planned| build(&sources, planned, &request, &mut sink)).unwrap_or_default();
    let check = check_command(&job, sources.get(input.job).path());
    if print_findings(&sources, sink, format, check.as_deref()) != Outcome::Success {
        return Ok(None);
    }
    let jobs = outputs.into_iter().map(|output| BuiltJob { plan: output.job, files: output.artifacts });
    Ok(Some(BuiltPlan {
        jobs: jobs.collect(),
        source,
        resumed: None,
        job_file: Some(sources.get(input.job).text().to_owned()),
        sources,
        directory: input.directory.clone().into(),
        scaled: scaled.into_iter().collect(),
        reserved_ports,
        gpus_asked_at: found.get().and_then(|inventory| inventory.asked_at),
    }))
}

/// The arguments of the compiler among those of `jobc run`.
pub(in super::super) fn job_args(args: &RunArgs, path: Option<Utf8PathBuf>) -> JobArgs {
    JobArgs {
        job: path,
        set: args.set.clone(),
        params: args.params.clone(),
        target: args.target.iter().cloned().collect(),
        // Only this backend is used, so that no other can reject the job.
        backend: vec![BackendName::Oci],
        targets: args.targets.clone(),
        allow_lossy: args.allow_lossy,
        locked: args.locked,
        ..JobArgs::default()
    }
}

/// The command that shows all findings of a job file in full; none for stdin and commands.
fn check_command(args: &JobArgs, name: &Utf8Path) -> Option<String> {
    if name == STDIN || name == COMMAND {
        return None;
    }
    let mut words = vec!["jobc".to_owned(), "check".to_owned()];
    words.extend(args.job.iter().map(|path| quote(path.as_str())));
    words.extend(args.set.iter().map(|(name, value)| format!("--set {}", quote(&format!("{name}={value}")))));
    words.extend(args.params.iter().map(|path| format!("--params {}", quote(path.as_str()))));
    words.extend(args.target.iter().map(|name| format!("--target {}", quote(name))));
    words.extend(args.targets.iter().map(|path| format!("--targets {}", quote(path.as_str()))));
    words.extend(args.allow_lossy.then(|| "--allow-lossy".to_owned()));
    Some(words.join(" "))
}

/// The job file as an absolute path; `<stdin>` or `<command>` where it is none.
fn absolute(input: &Input) -> Utf8PathBuf {
    let name = input.sources.get(input.job).path();
    if name == STDIN || name == COMMAND {
        name.to_owned()
    } else {
        input.directory.join(name.file_name().unwrap_or_default())
    }
}

/// Prints the findings before a run. Warnings are one line each, since the output of the run follows; `check` is the
/// command that shows them in full, if there is one.
fn print_findings(sources: &Sources, sink: Sink, format: FormatArg, check: Option<&str>) -> Outcome {
    let diagnostics = sink.finish();
    let Some(first) = diagnostics.first() else { return Outcome::Success };
    if format != FormatArg::Text || report::count(&diagnostics, Severity::Error) > 0 {
        return report::print_findings(sources, &diagnostics, format, true);
    }
    let lines = render(FormatArg::Short.into(), sources, &diagnostics, &terminal::style());
    let more = match check {
        Some(check) if diagnostics.len() == 1 => format!("`{check}` shows it in full"),
        Some(check) => format!("`{check}` shows them in full"),
        None => format!("for more, run `jobc explain {}`", first.code),
    };
    let counted = summary(&diagnostics).map(|counted| format!("{counted}; ")).unwrap_or_default();
    terminal::eprint(&format!("{lines}{counted}{more}\n"));
    Outcome::Success
}
