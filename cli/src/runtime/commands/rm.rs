//! `jobc rm` and `jobc gc`: remove records of ended jobs.

use std::fs::DirEntry;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use jobc_job::directory::{Directory, JobDirectories};
use jobc_job::record::Record;
use jobc_job::sweep;
use jobc_place::job_ref::JobRef;
use jobc_place::members::Members;
use jobc_place::time::Time;
use jobc_schema::Bytes;
use jobc_schema::plural;
use jobc_sys::error::{Error, Kind};
use serde_json::json;

use super::found::{self, Places, print_done};
use super::jobs::{Jobs, Result, format_ago};
use crate::args::FormatArg;
use crate::runtime::args::jobs::{GcArgs, RmArgs};
use crate::runtime::kept;
use crate::terminal;

pub(crate) fn rm(args: &RmArgs) -> Result<ExitCode> {
    let format = args.jobs.output_args.format;
    let mut places = Places::default();
    let mut found = Vec::new();
    for word in &args.jobs.jobs {
        if args.force && is_unreadable_sweep(word) {
            places.open(None)?.delete_sweep(&word.to_string())?;
            print_done(format, &word.to_string(), "removed");
        } else {
            found.push(places.find(word)?);
        }
    }
    let jobs = || found.iter().flat_map(|one| one.members.jobs().iter().map(move |job| (one, job)));
    if let Some((one, job)) = jobs().find(|(_, job)| !args.force && !job.state.is_final()) {
        let message = format!("job `{}` {}", one.id_of(job), job.state.clause());
        let error = Error::new(Kind::State, message);
        return Err(error.help("stop it first with `jobc stop`, or remove it with `--force`").into());
    }
    found::change(
        &found,
        &|one, job| {
            one.place.delete(&job.name)?;
            if let Some(handle) = one.handle_of(job) {
                kept::forget(&handle);
            }
            Ok(())
        },
        &|one, _| print_done(format, &one.id(), "removed"),
    )?;
    for one in &found {
        if let Members::Sweep { name, .. } = &one.members {
            one.place.delete_sweep(name)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether a word is the ID of a sweep of this host whose file cannot be read.
fn is_unreadable_sweep(word: &JobRef) -> bool {
    let JobRef::Local(word) = word else { return false };
    Jobs::open().is_ok_and(|jobs| jobs.place.sweep(word).is_err())
}

/// A job to remove, and the reason.
struct RemovableJob {
    directory: Directory,
    why: String,
    bytes: u64,
}

pub(crate) fn gc(args: &GcArgs) -> Result<ExitCode> {
    let jobs = Jobs::open()?;
    let now = Time::now();
    let limit = Time::from_millis(now.millis().saturating_sub(millis(args.older_than)));
    let mut going = Vec::new();
    for id in jobs.directories().list()? {
        let directory = jobs.directories().job(&id);
        let Some(why) = removal_reason(&directory, limit, now) else { continue };
        let bytes = directory_size(&directory.record) + directory_size(&directory.state);
        going.push(RemovableJob { directory, why, bytes });
    }
    if !args.dry_run {
        remove_queue_directories(jobs.directories());
    }
    for job in &going {
        if !args.dry_run {
            job.directory.remove()?;
        }
        if args.output_args.format == FormatArg::Json {
            let line =
                json!({"id": job.directory.id, "why": job.why, "bytes": job.bytes, "removed": !args.dry_run});
            terminal::print(&format!("{line}\n"));
        } else {
            let word = if args.dry_run { "would remove" } else { "removed" };
            terminal::print(&format!(
                "{word} {}: {}, {}\n",
                job.directory.id,
                job.why,
                Bytes(job.bytes).measured()
            ));
        }
    }
    if !args.dry_run {
        sweep::remove_empty(jobs.directories())?;
    }
    if args.output_args.format != FormatArg::Json {
        let total = Bytes(going.iter().map(|job| job.bytes).sum()).measured();
        let count = plural(going.len(), "job");
        terminal::print(&format!("{count}, {total}\n"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Removes the queue directories of matrices of which no job exists any more.
///
/// They contain only empty files, so a leftover does no harm.
fn remove_queue_directories(places: &JobDirectories) {
    let directories = std::fs::read_dir(places.state.with_file_name("turns")).into_iter().flatten().flatten();
    for directory in directories.map(|entry| entry.path()) {
        let age = std::fs::metadata(&directory).and_then(|data| data.modified()).map(|time| time.elapsed());
        let old = age.is_ok_and(|age| age.is_ok_and(|age| age > QUEUE_START_TIMEOUT));
        let files = std::fs::read_dir(&directory).into_iter().flatten().flatten();
        let is_free = |file: &DirEntry| {
            let file = std::fs::OpenOptions::new().write(true).open(file.path());
            file.is_ok_and(|file| file.try_lock().is_ok())
        };
        if old && files.into_iter().all(|file| is_free(&file)) {
            let _ = std::fs::remove_dir_all(&directory);
        }
    }
}

/// How long the jobs of a matrix may take until they hold their files.
const QUEUE_START_TIMEOUT: Duration = Duration::from_mins(1);

/// Why a job's files may be removed: nothing runs, and it ended long ago or never started.
fn removal_reason(directory: &Directory, limit: Time, now: Time) -> Option<String> {
    if directory.is_supervised() {
        return None;
    }
    // An unreadable record may be next to logs that the user wants; `jobc rm --force` removes it.
    let Ok(record) = Record::read(directory) else { return None };
    let Some(record) = record else {
        let made =
            std::fs::metadata(&directory.record).or_else(|_| std::fs::metadata(&directory.state)).ok()?;
        let made = Time::of(made.modified().ok()?);
        return (made < limit).then(|| "left by a command that was killed".to_owned());
    };
    let ended = record.ended.unwrap_or(record.submitted);
    (record.state.is_final() && ended < limit).then(|| format!("ended {}", format_ago(ended, now)))
}

/// Size in bytes of the readable files below a directory.
fn directory_size(directory: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(directory) else { return 0 };
    let of = |entry: DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => directory_size(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.flatten().map(of).sum()
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
