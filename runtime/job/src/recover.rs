//! Jobs whose supervisor was killed: found by any later command, cleaned up, and recorded as lost.

use std::io::ErrorKind;
use std::time::Duration;

use serde_json::json;

use crate::admission::ledger::Ledger;
use crate::clean::{release_reserve, remove_containers, remove_state};
use crate::directory::{Directory, JobDirectories};
use crate::event::{Event, EventLog, Kind as EventKind};
use crate::record::Record;
use jobc_container::cgroup::{Layout, remove_empty};
use jobc_container::remove::remove;
use jobc_gpu::mps;
use jobc_place::exit_code;
use jobc_place::job::End;
use jobc_place::state::JobState;
use jobc_place::task::TaskState;
use jobc_place::time::Time;
use jobc_place::verdict::{Judgment, Verdict};
use jobc_sys::error::{Result, file_error};
use jobc_sys::id::JobId;
use jobc_sys::write_atomic::Durability;

/// The age of directories without a record after which no process will write one.
const ABANDONED_AGE: Duration = Duration::from_mins(1);

/// A job that was found lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostJob {
    /// The job.
    pub id: JobId,
    /// The parts of it that could not be removed, one per line.
    pub not_removed: Vec<String>,
}

/// Finds jobs that have no supervisor and have not ended, removes what they left on the host, and records it.
///
/// Containers ended with their supervisor; what is left are directories, cgroups and names. Of a job that ended and
/// was killed before it had removed its state, that is removed as well. A job that another command settles at the same
/// time is left to it.
pub fn recover_lost_jobs(places: &JobDirectories) -> Result<Vec<LostJob>> {
    let mut lost = Vec::new();
    mps::sweep(&mps::directory(&places.state))?;
    for id in places.list()? {
        let directory = places.job(&id);
        match Record::read(&directory) {
            Ok(Some(record)) if record.state.is_final() => {
                if directory.state.is_dir() && directory.try_lock()?.is_some() {
                    crate::provision::release(&directory)?;
                    if !is_kept(&directory) {
                        remove_state(&directory)?;
                    }
                }
            }
            Ok(Some(record)) => {
                if let Some(one) = recover_job(&directory, record)? {
                    // A process that reads the ledger removes the entries of dead jobs.
                    let _ = Ledger::standard(places).and_then(|ledger| ledger.entries());
                    lost.push(one);
                }
            }
            Ok(None) => remove_abandoned(&directory)?,
            // A command about this job reports the error of its record.
            Err(_) => {}
        }
    }
    Ok(lost)
}

/// Whether the submission requested to keep the containers' directories.
fn is_kept(directory: &Directory) -> bool {
    let text = std::fs::read(directory.submission_file()).unwrap_or_default();
    serde_json::from_slice(&text).is_ok_and(|submission: crate::submission::Submission| submission.keep)
}

fn recover_job(directory: &Directory, mut record: Record) -> Result<Option<LostJob>> {
    // After a restart of the host the state directory is gone as well, and with it everything that could be left.
    let _lock = if directory.state.is_dir() {
        match directory.try_lock()? {
            Some(lock) => Some(lock),
            None => return Ok(None),
        }
    } else {
        None
    };
    // It may have ended between the read of its record and the lock.
    if let Some(now) = Record::read(directory)? {
        if now.state.is_final() {
            crate::provision::release(directory)?;
            remove_state(directory)?;
            return Ok(None);
        }
        record = now;
    }
    let mut left = remove_containers(directory);
    if let Ok(layout) = Layout::detect() {
        remove_empty(&layout, &directory.id.to_string());
    }
    left.extend(crate::provision::release(directory).err().map(|error| error.to_string()));
    let pid = record.supervisor.map_or_else(|| "unknown".to_owned(), |process| process.pid.to_string());
    let explanation = if record.is_damaged {
        "lost: its record `job.json` was damaged, and it has no supervisor".to_owned()
    } else {
        format!("lost: its supervisor (process {pid}) was killed, and all of its tasks with it")
    };
    for task in &mut record.tasks {
        if task.state.is_alive() {
            task.reason = Some("its supervisor was killed".to_owned());
            task.verdict = Some(verdict("its supervisor was killed"));
        }
        if !task.state.is_final() {
            task.state = if task.state.is_alive() { TaskState::Failed } else { TaskState::Stopped };
        }
        task.process = None;
    }
    record.state = JobState::Lost;
    record.supervisor = None;
    record.ended = Some(Time::now());
    record.end = Some(End {
        explanation: explanation.clone(),
        exit_code: exit_code::NOT_STARTED,
        task: None,
        verdict: Some(verdict(&explanation)),
    });
    release_reserve(directory);
    let detail = json!({
        "exit_code": exit_code::NOT_STARTED, "explanation": explanation, "state": "lost",
        "verdict": verdict(&explanation),
    });
    // The record is what counts; a full disk may keep the event out.
    let _ = EventLog::open(directory).map(|mut events| events.push(&Event::of_job(EventKind::Ended, detail)));
    record.write(directory, Durability::Disk)?;
    if left.is_empty() {
        remove_state(directory)?;
    }
    Ok(Some(LostJob { id: directory.id.clone(), not_removed: left }))
}

/// The verdict on a job whose supervisor is gone.
fn verdict(evidence: &str) -> Judgment {
    let next =
        "find who killed the supervisor: a user, the end of a login session, or the kernel (`journalctl -k`)";
    Judgment {
        kind: Verdict::Infrastructure,
        evidence: vec![evidence.to_owned()],
        next: Some(next.to_owned()),
    }
}

/// Removes directories that a killed command created and left empty.
fn remove_abandoned(directory: &Directory) -> Result<()> {
    let made = |path: &std::path::Path| match std::fs::metadata(path).and_then(|data| data.modified()) {
        Ok(time) => Ok(Some(Time::now().since(Time::of(time)))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(file_error("stat", path, &error)),
    };
    let ages = [made(&directory.state)?, made(&directory.record)?];
    let old = ages.into_iter().flatten().all(|age| age > ABANDONED_AGE);
    // The submitting process may be about to lock a new one, so a check of the lock must not interfere.
    if old && (!directory.state.is_dir() || directory.try_lock()?.is_some()) {
        remove_containers(directory);
        for path in [&directory.state, &directory.record] {
            if path.is_dir() {
                remove(path)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
