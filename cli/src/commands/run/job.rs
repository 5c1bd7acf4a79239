//! `jobc run JOB`: a whole job on this machine, carried out by a supervisor of its own.
//!
//! The command compiles the job, writes what its supervisor needs into the job's folders and starts it: this program
//! again, in a session of its own. From then on the job is a folder of files; the command only shows what they say,
//! and what a user types ends, passes on or leaves the job.

mod attend;
mod built;
mod compile;
mod dry_run;
mod images;
mod options;
mod submit;
mod terminal;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_container::scope::lingers;
use jobc_job::admission::ledger::Ledger;
use jobc_job::admission::limits::Limits;
use jobc_job::record::Record;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::id::TaskId;
use jobc_sys::signals::Signals;

use crate::args::FormatArg;
use crate::args::run::RunArgs;
use crate::commands::follow::printer::Look;
use crate::commands::follow::{Follower, Shown};
use crate::commands::jobs::{Jobs, span};
use crate::commands::stop::exit_code;
use crate::outcome::INTERRUPTED;
use crate::report::container_warning;
use crate::table::Table;
use attend::{Asked, Running};
use built::Built;
use jobc_oci::OWN_FAILURE;

/// What whoever leaves a job to itself should know, where nobody has enabled lingering.
const ENDS_WITH_LOG_IN: &str = "your systemd keeps the limits, and ends with your last log-in, and the job with it; `loginctl enable-linger` keeps both";

/// Runs a job file; returns how the job ended, by the exit code.
pub(super) fn run_file(args: &RunArgs, path: Option<Utf8PathBuf>, format: FormatArg) -> Result<u8> {
    let jobs = Jobs::open()?;
    match compile::compile(args, path, format, &Ledger::standard(jobs.places())?)? {
        Some(built) => carry_out(args, &built, &jobs, format),
        None => Ok(OWN_FAILURE),
    }
}

/// Runs the folder of a built plan.
pub(super) fn run_plan(args: &RunArgs, folder: &Utf8Path, format: FormatArg) -> Result<u8> {
    carry_out(args, &built::read(folder)?, &Jobs::open()?, format)
}

fn carry_out(args: &RunArgs, built: &Built, jobs: &Jobs, format: FormatArg) -> Result<u8> {
    // Once for all tasks and jobs, and before an image is fetched for a job that cannot start.
    let limits = Limits::of(built.first_bundles())?;
    if !args.allow_unenforced {
        limits.check()?;
    }
    let scope = limits.want_scope();
    if args.dry_run {
        return dry_run::show(args, built, jobs.places(), scope).map(|()| 0);
    }
    // From here on a Ctrl-C is one for the job.
    let signals = Signals::take()?;
    let task = args.terminal.as_deref().map(|word| lent(word, built)).transpose()?;
    let images = images::provide(args, built, &signals, format)?;
    let submitted = submit::submit(args, built, &images, jobs.places(), scope)?;
    let (ours, theirs) = match &task {
        Some(_) => terminal::socket_pair().map(|(ours, theirs)| (Some(ours), Some(theirs)))?,
        None => (None, None),
    };
    let mut running = submitted.start(theirs)?;
    // From now on the supervisors hold what they need of them.
    drop(images);
    if args.verbose {
        for (job, Running { folder, .. }) in built.jobs.iter().zip(&running) {
            let scope = Record::read(folder)?.and_then(|record| record.scope);
            crate::terminal::eprint(&dry_run::described(&job.plan, folder, scope.as_deref())?);
        }
    }
    if args.detach {
        let ids: String = running.iter().map(|job| format!("{}\n", job.folder.id)).collect();
        crate::terminal::print(&ids);
        let in_scope = |job: &Running| {
            Record::read(&job.folder).is_ok_and(|record| record.is_some_and(|record| record.scope.is_some()))
        };
        if scope && running.iter().any(in_scope) && !lingers() {
            crate::terminal::eprint(&container_warning(ENDS_WITH_LOG_IN));
        }
        return Ok(0);
    }
    let mut asked = Asked::default();
    if let (Some(socket), Some(task)) = (ours, task) {
        terminal::lend(&socket, &task, &mut running, &signals, &mut asked)?;
    }
    let follower = follower(args, &running, format)?;
    let records = attend::attend(jobs, &mut running, &signals, &mut asked, follower)?;
    if built.jobs.len() > 1 && !args.quiet {
        crate::terminal::eprint(&summary(built, &records).render(crate::terminal::columns_of_stderr()));
    }
    Ok(code_of(&records, built.jobs.len()))
}

/// The task that gets our terminal.
fn lent(word: &str, built: &Built) -> Result<TaskId> {
    match &built.jobs[..] {
        [job] => options::task(word, &job.plan),
        jobs => Err(Error::new(Kind::Config, format!("there is one terminal, and {} jobs", jobs.len()))
            .help("run one combination of the matrix: write it without `matrix`, or give its values")),
    }
}

/// What shows the jobs as they run; nothing where nobody wants to see it.
fn follower(args: &RunArgs, running: &[Running], format: FormatArg) -> Result<Option<Follower>> {
    if args.quiet {
        return Ok(None);
    }
    let mut jobs = Vec::with_capacity(running.len());
    for Running { folder, .. } in running {
        jobs.extend(Record::read(folder)?.map(|record| (folder.clone(), record)));
    }
    // What the task with the terminal wrote there is no log; the others' were shown nowhere yet.
    let shown = Shown { tasks: args.no_logs.then(Vec::new), story: true, goes_on: true, ..Shown::default() };
    let look = Look { json: format == FormatArg::Json, ..Look::default() };
    Ok(Some(Follower::new(&jobs, &shown, look)))
}

/// How the jobs of a matrix ended, each with its values.
fn summary(built: &Built, records: &[Record]) -> Table<4> {
    let mut table = Table::new(["JOB", "VALUES", "RAN", "END"]);
    for record in records {
        let job = built.jobs.iter().find(|job| job.plan.name == record.id.name);
        let values = job.into_iter().flat_map(|job| &job.plan.matrix);
        let values: Vec<String> = values.map(|(axis, value)| format!("{axis}={value}")).collect();
        let ran = record.started.zip(record.ended).map(|(started, ended)| span(ended.since(started)));
        let end = record.end.as_ref().map_or(record.state.as_str(), |end| end.explanation.as_str());
        table.row([record.id.to_string(), values.join(" "), ran.unwrap_or_default(), end.to_owned()]);
    }
    table
}

/// The exit code: of one job its own; of a matrix 0 where every job ended well, 130 where they were interrupted, 1 where
/// one failed.
fn code_of(records: &[Record], jobs: usize) -> u8 {
    let codes: Vec<u8> = records.iter().map(exit_code).collect();
    match () {
        () if codes.len() < jobs => OWN_FAILURE,
        () if jobs == 1 => codes[0],
        () if codes.iter().all(|code| *code == 0) => 0,
        () if codes.contains(&INTERRUPTED) => INTERRUPTED,
        () => 1,
    }
}
