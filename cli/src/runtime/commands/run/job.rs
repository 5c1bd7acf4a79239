//! `jobc run JOB`: runs a whole job on this host, with its own supervisor.
//!
//! The command compiles the job, writes the files for its supervisor into the job's directories and starts it: this
//! program again, in its own session. From then on the job is a directory of files. The command only shows their
//! content, and forwards signals.

mod attach;
mod built_plan;
mod compile;
mod dry_run;
mod images;
mod options;
mod submit;
mod terminal;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_container::scope::is_linger_enabled;
use jobc_job::admission::ledger::Ledger;
use jobc_job::admission::limits::Limits;
use jobc_job::host_environment::{Caller, HostEnvironments};
use jobc_job::record::Record;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::id::TaskId;
use jobc_sys::signals::Signals;

use super::command;
use crate::args::FormatArg;
use crate::runtime::args::run::RunArgs;
use crate::runtime::commands::follow::printer::LineFormat;
use crate::runtime::commands::follow::{FollowOptions, Follower};
use crate::runtime::commands::jobs::{Jobs, format_duration};
use crate::runtime::commands::stop::exit_code;
use crate::runtime::message::INTERRUPTED;
use crate::runtime::message::container_warning;
use crate::table::Table;
use attach::{RunningJob, StopRequest};
use built_plan::BuiltPlan;
use compile::JobSource;
use jobc_oci::RUNTIME_FAILURE_EXIT_CODE;

/// Warning for a detached job if lingering is not enabled.
const LINGER_WARNING: &str = "the job ends with your last login, since your systemd enforces its limits and ends then; `loginctl enable-linger` keeps both running";

/// Runs a job file; returns the exit code of the job.
pub(super) fn run_file(args: &RunArgs, path: Option<Utf8PathBuf>, format: FormatArg) -> Result<u8> {
    let jobs = Jobs::open()?;
    match compile::compile(args, JobSource::File(path), format, &Ledger::standard(jobs.directories())?)? {
        Some(built) => run_built(args, &built, &jobs, format),
        None => Ok(RUNTIME_FAILURE_EXIT_CODE),
    }
}

/// Runs a command without a job file; returns its exit code.
pub(super) fn run_command(args: &RunArgs, format: FormatArg) -> Result<u8> {
    let jobs = Jobs::open()?;
    let text = command::job_file(&args.command, &Caller::of_process(std::env::current_dir().ok()));
    let source = JobSource::Text(text.clone());
    let Some(built) = compile::compile(args, source, format, &Ledger::standard(jobs.directories())?)? else {
        return Ok(RUNTIME_FAILURE_EXIT_CODE);
    };
    if let Some(path) = &args.command.save {
        command::save(&text, path)?;
        if !args.quiet {
            crate::terminal::eprint(&format!("jobc: wrote `{path}`; to run it: `jobc run {path}`\n"));
        }
    }
    run_built(args, &built, &jobs, format)
}

/// Runs the directory of a built plan.
pub(super) fn run_plan(args: &RunArgs, directory: &Utf8Path, format: FormatArg) -> Result<u8> {
    run_built(args, &built_plan::read(directory)?, &Jobs::open()?, format)
}

fn run_built(args: &RunArgs, built: &BuiltPlan, jobs: &Jobs, format: FormatArg) -> Result<u8> {
    let caller = Caller::of_process(std::env::current_dir().ok());
    for job in &built.jobs {
        HostEnvironments::read(&job.plan, &caller)?;
    }
    // Once for all tasks and jobs, and before an image is pulled for a job that cannot start.
    let limits = Limits::of(built.first_bundles())?;
    if !args.allows_unenforced() {
        limits.check()?;
    }
    let scope = limits.needs_scope();
    if args.dry_run {
        return dry_run::show(args, built, jobs.directories(), scope).map(|()| 0);
    }
    // From here on, Ctrl-C is for the job.
    let signals = Signals::block_forwarded()?;
    let task = args.terminal.as_deref().map(|word| terminal_task(word, built)).transpose()?;
    let images = images::provide(args, built, &signals, format)?;
    let submitted = submit::submit(args, built, &images, jobs.directories(), scope)?;
    let (ours, theirs) = match &task {
        Some(_) => terminal::socket_pair().map(|(ours, theirs)| (Some(ours), Some(theirs)))?,
        None => (None, None),
    };
    let mut running = submitted.start(theirs)?;
    // From now on the supervisors hold what they need of the images.
    drop(images);
    if args.verbose {
        for (job, RunningJob { directory, .. }) in built.jobs.iter().zip(&running) {
            let scope = Record::read(directory)?.and_then(|record| record.scope);
            crate::terminal::eprint(&dry_run::describe_job(&job.plan, directory, scope.as_deref())?);
        }
    }
    if args.detach {
        let ids: String = running.iter().map(|job| format!("{}\n", job.directory.id)).collect();
        crate::terminal::print(&ids);
        let in_scope = |job: &RunningJob| {
            Record::read(&job.directory)
                .is_ok_and(|record| record.is_some_and(|record| record.scope.is_some()))
        };
        if scope && running.iter().any(in_scope) && !is_linger_enabled() {
            crate::terminal::eprint(&container_warning(LINGER_WARNING));
        }
        return Ok(0);
    }
    let mut stop_request = StopRequest::default();
    if let (Some(socket), Some(task)) = (ours, task) {
        terminal::attach_terminal(&socket, &task, &mut running, &signals, &mut stop_request)?;
    }
    let follower = follower(args, &running, format)?;
    let records = attach::attach(jobs, &mut running, &signals, &mut stop_request, follower)?;
    if built.jobs.len() > 1 && !args.quiet {
        crate::terminal::eprint(&summary(built, &records).render(crate::terminal::columns_of_stderr()));
    }
    Ok(overall_exit_code(&records, built.jobs.len()))
}

/// The task that gets our terminal.
fn terminal_task(word: &str, built: &BuiltPlan) -> Result<TaskId> {
    match &built.jobs[..] {
        [job] => options::task(word, &job.plan),
        jobs => Err(Error::new(Kind::Config, format!("`--terminal` takes one job, not {}", jobs.len()))
            .help("run one combination of the matrix: write it without `matrix`, or give its values")),
    }
}

/// The follower that shows the jobs; none with `--quiet`.
fn follower(args: &RunArgs, running: &[RunningJob], format: FormatArg) -> Result<Option<Follower>> {
    if args.quiet {
        return Ok(None);
    }
    let mut jobs = Vec::with_capacity(running.len());
    for RunningJob { directory, .. } in running {
        jobs.extend(Record::read(directory)?.map(|record| (directory.clone(), record)));
    }
    // Output of the task with the terminal is not logged; output of the others was not shown yet.
    let shown = FollowOptions {
        tasks: args.no_logs.then(Vec::new),
        show_events: true,
        ignore_stdout_errors: true,
        ..FollowOptions::default()
    };
    let look = LineFormat { json: format == FormatArg::Json, ..LineFormat::default() };
    Ok(Some(Follower::new(&jobs, &shown, look)))
}

/// How the jobs of a matrix ended, each with its values.
fn summary(built: &BuiltPlan, records: &[Record]) -> Table<4> {
    let mut table = Table::new(["JOB", "VALUES", "RAN", "END"]);
    for record in records {
        let job = built.jobs.iter().find(|job| job.plan.name == record.id.name);
        let values = job.into_iter().flat_map(|job| &job.plan.matrix);
        let values: Vec<String> = values.map(|(axis, value)| format!("{axis}={value}")).collect();
        let ran =
            record.started.zip(record.ended).map(|(started, ended)| format_duration(ended.since(started)));
        let end = record.end.as_ref().map_or(record.state.as_str(), |end| end.explanation.as_str());
        table.row([record.id.to_string(), values.join(" "), ran.unwrap_or_default(), end.to_owned()]);
    }
    table
}

/// The exit code: of one job its own; of a matrix 0 if all jobs succeeded, 130 if they were interrupted, 1 if one
/// failed.
fn overall_exit_code(records: &[Record], jobs: usize) -> u8 {
    let codes: Vec<u8> = records.iter().map(exit_code).collect();
    match () {
        () if codes.len() < jobs => RUNTIME_FAILURE_EXIT_CODE,
        () if jobs == 1 => codes[0],
        () if codes.iter().all(|code| *code == 0) => 0,
        () if codes.contains(&INTERRUPTED) => INTERRUPTED,
        () => 1,
    }
}
