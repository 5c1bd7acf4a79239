//! `jobc run JOB`: runs a whole job on this host, with its own supervisor.
//!
//! The command compiles the job, writes the files for its supervisor into the job's directories and starts it: this
//! program again, in its own session. From then on the job is a directory of files. The command only shows their
//! content, and forwards signals.

mod attach;
mod built_plan;
mod compile;
mod detached;
mod discarded;
mod dry_run;
mod host_notes;
mod images;
mod live;
mod options;
mod resume;
mod retry_of;
mod submit;
mod terminal;

pub(super) use dry_run::number_lines;
pub(crate) use host_notes::host_notes;

use std::io::IsTerminal as _;

use camino::Utf8Path;
use jobc_container::scope::is_linger_enabled;
use jobc_job::admission::ledger::Ledger;
use jobc_job::admission::limits::Limits;
use jobc_job::host_environment::{Caller, HostEnvironments};
use jobc_job::provision;
use jobc_job::record::Record;
use jobc_job::sweep::Sweep;
use jobc_place::time::Time;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::id::{JobId, TaskId};
use jobc_sys::signals::Signals;

use super::command;
use crate::args::FormatArg;
use crate::runtime::args::metric::MetricArgs;
use crate::runtime::args::run::{RunArgs, UnenforcedLimits};
use crate::runtime::args::run_command::CommandArgs;
use crate::runtime::commands::follow::printer::LineFormat;
use crate::runtime::commands::follow::{FollowOptions, Follower};
use crate::runtime::commands::jobs::Jobs;
use crate::runtime::commands::sweep::{Comparison, count, exit_code, overall_exit_code};
use crate::runtime::message::container_warning;
use crate::runtime::notice;
use attach::{RunningJob, StopRequest};
use built_plan::BuiltPlan;
use compile::JobSource;
pub(super) use compile::job_args;
use discarded::Subject;
use jobc_job::notice::sentence;
use jobc_oci::RUNTIME_FAILURE_EXIT_CODE;
use live::LiveTable;
use retry_of::EarlierRun;

/// Warning for a detached job if lingering is not enabled.
const LINGER_WARNING: &str = "the job ends with your last login, since your systemd enforces its limits and ends then; `loginctl enable-linger` keeps both running";

/// Runs a job file; returns the exit code of the job.
pub(super) fn run_file(args: &RunArgs, path: Option<&Utf8Path>, format: FormatArg) -> Result<u8> {
    let jobs = Jobs::open()?;
    let ledger = Ledger::standard(jobs.directories())?;
    let earlier = args.retry_of.as_ref().map(|job| EarlierRun::find(&jobs, job)).transpose()?;
    let path = match (path, &earlier) {
        (None, Some(earlier)) => Some(earlier.job_file()?),
        (path, _) => path,
    };
    let source = || JobSource::File(path.map(Utf8Path::to_owned));
    let compile = |numbers| compile::compile(args, source(), format, &ledger, numbers);
    let built = if args.resume {
        resume::reject_stdin(path)?;
        match resume::resume(&jobs, &compile)? {
            Some(resume::Resumption::Remaining(built)) => Some(built),
            Some(resume::Resumption::Complete(sweep)) => return finish_complete(args, &jobs, &sweep),
            None => None,
        }
    } else {
        compile(vec![])?
    };
    match built {
        Some(mut built) => {
            if let Some(earlier) = earlier {
                earlier.select(&mut built, &jobs)?;
                earlier.show_changes(&built)?;
            }
            run_built(args, built, &jobs, format)
        }
        None => Ok(RUNTIME_FAILURE_EXIT_CODE),
    }
}

/// Runs a command without a job file; returns its exit code.
pub(super) fn run_command(args: &RunArgs, format: FormatArg) -> Result<u8> {
    let jobs = Jobs::open()?;
    let caller = Caller::of_process(std::env::current_dir().ok());
    let text = command::job_file(args, &caller)?;
    command::print_hidden_path(args, &caller);
    let source = JobSource::Text(text.clone());
    let ledger = Ledger::standard(jobs.directories())?;
    let Some(built) = compile::compile(args, source, format, &ledger, vec![])? else {
        return Ok(RUNTIME_FAILURE_EXIT_CODE);
    };
    if let Some(path) = &args.command.save {
        command::save(&text, path)?;
        if !args.quiet {
            let devices = args.command.gpus.as_ref().map(|gpus| gpus.devices.join(",")).unwrap_or_default();
            let devices = if devices.is_empty() { devices } else { format!(" --devices {devices}") };
            crate::terminal::eprint(&format!(
                "jobc: wrote `{path}`; to run it: `jobc run {path}{devices}`\n"
            ));
        }
    }
    run_built(args, built, &jobs, format)
}

/// Reports a sweep of which no combination is left to run.
fn finish_complete(args: &RunArgs, jobs: &Jobs, sweep: &Sweep) -> Result<u8> {
    if args.detach {
        crate::terminal::print(&format!("{}\n", sweep.id));
    } else if !args.quiet {
        crate::terminal::eprint(&format!("jobc: {}: all of its combinations have succeeded\n", sweep.id));
        print_comparison(jobs, &sweep.id)?;
    }
    Ok(0)
}

/// Prints the table of a sweep on stderr.
fn print_comparison(jobs: &Jobs, id: &JobId) -> Result<()> {
    if let Some(sweep) = Sweep::read(jobs.directories(), id)? {
        let table = Comparison::gather(jobs, &sweep, &MetricArgs::default())?.table(Time::now());
        crate::terminal::eprint(&table.render(crate::terminal::columns_of_stderr()));
    }
    Ok(())
}

/// Reports limits that nothing enforces, once for all jobs and tasks.
fn report_unenforced(limits: &Limits) {
    if let Some(limits) = limits.unenforced() {
        let way = "`jobc doctor --fix` prints how to enforce them, `enforce: true` in `resources` refuses to run without them, and `jobc config set allow-unenforced true` ends this message";
        crate::terminal::eprint(&format!("{} = help: {way}\n", container_warning(&limits)));
    }
}

/// Says in a dry run that a real one would refuse limits that nothing enforces.
pub(super) fn note_refused_limits(limits: &Limits) {
    if let Err(error) = limits.check() {
        let help = error.advice().unwrap_or_default();
        crate::terminal::eprint(&format!(
            "note: without `--dry-run` this is refused: {}\n = help: {help}\n",
            error.message()
        ));
    }
}

/// Says that an earlier run of the job, which has not ended, writes to the same outputs.
fn note_shared_outputs(built: &BuiltPlan, jobs: &Jobs) {
    for job in &built.jobs {
        for sentence in provision::shared_outputs(&job.plan, &built.directory, jobs.directories()) {
            let help = "stop that run, or name another directory";
            crate::terminal::eprint(&format!("note: {sentence}\n = help: {help}\n"));
        }
    }
}

/// Runs the directory of a built plan.
pub(super) fn run_plan(args: &RunArgs, directory: &Utf8Path, format: FormatArg) -> Result<u8> {
    run_built(args, built_plan::read(directory)?, &Jobs::open()?, format)
}

fn run_built(args: &RunArgs, mut built: BuiltPlan, jobs: &Jobs, format: FormatArg) -> Result<u8> {
    let caller = Caller::of_process(std::env::current_dir().ok());
    for job in &built.jobs {
        HostEnvironments::read(&job.plan, &caller)?;
    }
    // Once for all tasks and jobs, and before an image is pulled for a job that cannot start.
    let limits = Limits::of(built.first_bundles())?;
    match built.unenforced_limits(args) {
        UnenforcedLimits::Refused if args.dry_run => note_refused_limits(&limits),
        UnenforcedLimits::Refused => limits.check()?,
        UnenforcedLimits::Reported if !args.quiet => report_unenforced(&limits),
        UnenforcedLimits::Reported | UnenforcedLimits::Accepted => {}
    }
    let scope = limits.needs_scope();
    if args.dry_run {
        return dry_run::show(args, &built, jobs.directories(), scope).map(|()| 0);
    }
    if !args.quiet {
        note_shared_outputs(&built, jobs);
    }
    // From here on, Ctrl-C is for the job.
    let signals = Signals::block_forwarded()?;
    let task = args.terminal.as_deref().map(|word| terminal_task(word, &built)).transpose()?;
    let has_one_task = matches!(&built.jobs[..], [job] if options::only_task(&job.plan).is_ok());
    if args.interactive && args.passes_stdin() && built.jobs.len() > 1 {
        return Err(Error::new(
            Kind::Config,
            format!("`--interactive` takes one job, not {}", built.jobs.len()),
        )
        .help("run one combination of the matrix: write it without `matrix`, or give its values"));
    }
    if args.passes_stdin() && !args.interactive && !has_one_task && !args.quiet {
        let note = "jobc: note: there are several tasks, so none of them gets stdin\n";
        crate::terminal::eprint(note);
    }
    let images = images::provide(args, &built, &signals, format)?;
    let submitted = submit::submit(args, &built, &images, jobs.directories(), scope)?;
    let sweep = submitted.sweep().cloned();
    let (ours, theirs) = match &task {
        Some(_) => terminal::socket_pair().map(|(ours, theirs)| (Some(ours), Some(theirs)))?,
        None if args.passes_stdin() && has_one_task => (None, Some(terminal::own_stdin()?)),
        None => (None, None),
    };
    let mut running = submitted.start(theirs)?;
    // From now on the supervisors hold the images and ports that they need.
    drop(images);
    built.reserved_ports.clear();
    if args.verbose {
        for (job, RunningJob { directory, .. }) in built.jobs.iter().zip(&running) {
            let scope = Record::read(directory)?.and_then(|record| record.scope);
            crate::terminal::eprint(&dry_run::describe_job(&job.plan, directory, scope.as_deref())?);
        }
    }
    if args.detach {
        if !detached::wait_for_start(jobs, &mut running, &signals)? {
            return Ok(RUNTIME_FAILURE_EXIT_CODE);
        }
        let jobs = running.iter().map(|job| &job.directory.id);
        // A sweep is one thing, whatever the number of its jobs.
        let ids: Vec<&JobId> = sweep.as_ref().map_or_else(|| jobs.collect(), |sweep| vec![sweep]);
        crate::terminal::print(&ids.iter().map(|id| format!("{id}\n")).collect::<String>());
        if !args.quiet {
            print_published(&running);
        }
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
    let table = live_table(args, &running, format);
    let records =
        attach::attach(jobs, &mut running, &signals, &mut stop_request, follower, table, args.verbose)?;
    if !args.quiet {
        let subject = match &args.command {
            CommandArgs { container, .. } if container.image.is_some() => Subject::ImageCommand,
            CommandArgs { command, .. } if !command.is_empty() => Subject::Command,
            _ => Subject::JobFile,
        };
        discarded::print_note(running.iter().map(|job| &job.directory), subject);
        command::print_unread_stdin(args);
    }
    if let Some(sweep) = sweep.filter(|_| !args.quiet) {
        print_comparison(jobs, &sweep)?;
    }
    if args.notify {
        notify(&records);
    }
    let codes: Vec<u8> = records.iter().map(exit_code).collect();
    let code = overall_exit_code(&codes, built.jobs.len());
    // As by `docker run`.
    let of_program =
        args.command.container.image.as_ref().filter(|_| code == 1).and_then(|_| program_code(&records));
    Ok(of_program.unwrap_or(code))
}

/// Shows that the jobs have ended: how the only one did, or how many did how.
fn notify(records: &[Record]) {
    match records {
        [] => {}
        [record] => {
            let state = record.state.as_str();
            let end = record.end.as_ref().map_or(state, |end| &end.explanation);
            notice::show(&record.id.to_string(), &sentence(state, end));
        }
        [first, ..] => {
            let counts = count(records.iter().map(|record| record.state.as_str()));
            let sweep = first.sweep.as_ref().unwrap_or(&first.id);
            notice::show(&sweep.to_string(), &counts);
        }
    }
}

/// Says where the ports of jobs in the background are published: the host chooses numbers that were not named.
fn print_published(running: &[RunningJob]) {
    for RunningJob { directory, .. } in running {
        let notes = Record::read(directory).ok().flatten().map(|record| record.notes).unwrap_or_default();
        for note in notes.iter().filter(|note| note.starts_with("port `")) {
            crate::terminal::eprint(&format!("jobc: {}: {note}\n", directory.id));
        }
    }
}

/// The exit code of the program that decided how the only job ended.
fn program_code(records: &[Record]) -> Option<u8> {
    let [record] = records else { return None };
    record.task(record.end.as_ref()?.task.as_ref()?)?.exit_code.filter(|&code| code != 0)
}

/// The task that gets our terminal.
fn terminal_task(word: &str, built: &BuiltPlan) -> Result<TaskId> {
    match &built.jobs[..] {
        [job] => options::task(word, &job.plan),
        jobs => Err(Error::new(Kind::Config, format!("`--terminal` takes one job, not {}", jobs.len()))
            .help("run one combination of the matrix: write it without `matrix`, or give its values")),
    }
}

/// The table below the output, on a terminal that can move its cursor.
fn live_table(args: &RunArgs, running: &[RunningJob], format: FormatArg) -> Option<LiveTable> {
    let is_terminal = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
    let can_move = std::env::var_os("TERM").is_some_and(|kind| !kind.is_empty() && kind != "dumb");
    let is_wanted = !args.plain && !args.quiet && args.terminal.is_none() && format != FormatArg::Json;
    (is_terminal && can_move && is_wanted)
        .then(|| LiveTable::new(running.iter().map(|job| job.directory.clone())))
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
