//! `jobc rm` and `jobc gc`: removing what is kept of ended jobs.

use std::fs::DirEntry;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use jobc_job::folder::{Folder, Places};
use jobc_job::record::Record;
use jobc_job::time::Time;
use jobc_sys::error::{Error, Kind};
use serde_json::json;

use super::jobs::{Jobs, Result, ago, done, rounded};
use super::stop;
use crate::args::FormatArg;
use crate::args::jobs::{GcArgs, RmArgs};
use crate::terminal;

pub(crate) fn rm(args: &RmArgs) -> Result<ExitCode> {
    let jobs = Jobs::open()?;
    let folders = args.jobs.jobs.iter().map(|word| jobs.find(word)).collect::<Result<Vec<_>>>()?;
    for folder in &folders {
        end(&jobs, folder, args.force)?;
        folder.remove()?;
        done(args.jobs.shown.format, folder, "removed");
    }
    Ok(ExitCode::SUCCESS)
}

/// Sees that nothing of a job runs, or with `force` ends what does.
fn end(jobs: &Jobs, folder: &Folder, force: bool) -> Result<()> {
    if !folder.is_supervised() {
        return Ok(());
    }
    if !force {
        let error = Error::new(Kind::State, format!("job `{}` is running", folder.id));
        return Err(error.help("end it first with `jobc stop`, or remove it with `--force`").into());
    }
    stop::end_now(jobs, folder)
}

/// A job that goes, and what for.
struct Going {
    folder: Folder,
    why: String,
    bytes: u64,
}

pub(crate) fn gc(args: &GcArgs) -> Result<ExitCode> {
    let jobs = Jobs::open()?;
    let now = Time::now();
    let limit = Time::from_millis(now.millis().saturating_sub(millis(args.older_than)));
    let mut going = Vec::new();
    for id in jobs.places().list()? {
        let folder = jobs.places().job(&id);
        let Some(why) = why_it_goes(&folder, limit, now) else { continue };
        let bytes = size(&folder.record) + size(&folder.state);
        going.push(Going { folder, why, bytes });
    }
    if !args.dry_run {
        remove_turns(jobs.places());
    }
    for job in &going {
        if !args.dry_run {
            job.folder.remove()?;
        }
        if args.shown.format == FormatArg::Json {
            let line =
                json!({"id": job.folder.id, "why": job.why, "bytes": job.bytes, "removed": !args.dry_run});
            terminal::print(&format!("{line}\n"));
        } else {
            let word = if args.dry_run { "would remove" } else { "removed" };
            terminal::print(&format!("{word} {}: {}, {}\n", job.folder.id, job.why, rounded(job.bytes)));
        }
    }
    if args.shown.format != FormatArg::Json {
        let total = rounded(going.iter().map(|job| job.bytes).sum());
        let count = if going.len() == 1 { "1 job".to_owned() } else { format!("{} jobs", going.len()) };
        terminal::print(&format!("{count}, {total}\n"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Removes the folders in which jobs of a matrix agreed on their turns, where none of them is there any more.
///
/// They hold nothing but empty files; one that cannot be removed now does no harm.
fn remove_turns(places: &Places) {
    let folders = std::fs::read_dir(places.state.with_file_name("turns")).into_iter().flatten().flatten();
    for folder in folders.map(|entry| entry.path()) {
        let age = std::fs::metadata(&folder).and_then(|data| data.modified()).map(|time| time.elapsed());
        let old = age.is_ok_and(|age| age.is_ok_and(|age| age > BEGINNING));
        let files = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let is_free = |file: &DirEntry| {
            let file = std::fs::OpenOptions::new().write(true).open(file.path());
            file.is_ok_and(|file| file.try_lock().is_ok())
        };
        if old && files.into_iter().all(|file| is_free(&file)) {
            let _ = std::fs::remove_dir_all(&folder);
        }
    }
}

/// How long the jobs of a matrix may take until they hold their files.
const BEGINNING: Duration = Duration::from_mins(1);

/// Why a job's files may go: nothing runs, and it ended long ago or was never really there.
fn why_it_goes(folder: &Folder, limit: Time, now: Time) -> Option<String> {
    if folder.is_supervised() {
        return None;
    }
    // One that cannot be read may stand beside logs that somebody wants; `jobc rm --force` is the way.
    let Ok(record) = Record::read(folder) else { return None };
    let Some(record) = record else {
        let made = std::fs::metadata(&folder.record).or_else(|_| std::fs::metadata(&folder.state)).ok()?;
        let made = Time::of(made.modified().ok()?);
        return (made < limit).then(|| "left by a command that was killed".to_owned());
    };
    let ended = record.ended.unwrap_or(record.submitted);
    (record.state.is_final() && ended < limit).then(|| format!("ended {}", ago(ended, now)))
}

/// Bytes of files below a folder, as far as they can be seen.
fn size(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let of = |entry: DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.flatten().map(of).sum()
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
