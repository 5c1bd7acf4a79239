//! Jobs whose supervisor was killed: found by any later command, cleaned up, and recorded as lost.

use std::io::ErrorKind;
use std::time::Duration;

use serde_json::json;

use crate::admission::ledger::Ledger;
use crate::clean::{release_reserve, remove_containers, remove_state};
use crate::event::{Event, Events, Kind as EventKind};
use crate::folder::{Folder, Places};
use crate::record::{End, JobState, Record, TaskState};
use crate::time::Time;
use jobc_container::cgroup::{Layout, remove_empty};
use jobc_container::remove::remove;
use jobc_gpu::mps;
use jobc_sys::error::{Result, machine};
use jobc_sys::id::JobId;
use jobc_sys::write_atomic::Durability;

/// How old folders without a record are when nobody will write one any more.
const FORGOTTEN: Duration = Duration::from_mins(1);

/// A job that was found lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Which.
    pub id: JobId,
    /// What could not be removed of it, a line each.
    pub left: Vec<String>,
}

/// Finds jobs that have no supervisor and have not ended, removes what they left on the machine, and records it.
///
/// Containers ended with their supervisor; what is left are folders, control groups and names. Of a job that ended and
/// was killed before it had removed its state, that is removed as well. A job that another command settles at the same
/// time is left to it.
pub fn settle(places: &Places) -> Result<Vec<Lost>> {
    let mut lost = Vec::new();
    mps::sweep(&mps::folder(&places.state))?;
    for id in places.list()? {
        let folder = places.job(&id);
        match Record::read(&folder) {
            Ok(Some(record)) if record.state.is_final() => {
                if folder.state.is_dir() && folder.try_lock()?.is_some() {
                    crate::provision::release(&folder)?;
                    if !is_kept(&folder) {
                        remove_state(&folder)?;
                    }
                }
            }
            Ok(Some(record)) => {
                if let Some(one) = settle_one(&folder, record)? {
                    // Whoever looks into the ledger takes out those who are gone.
                    let _ = Ledger::standard(places).and_then(|ledger| ledger.entries());
                    lost.push(one);
                }
            }
            Ok(None) => forget(&folder)?,
            // Whoever asks for this job is told what is wrong with its record.
            Err(_) => {}
        }
    }
    Ok(lost)
}

/// Whether the submission asked for the containers' folders to stay.
fn is_kept(folder: &Folder) -> bool {
    let text = std::fs::read(folder.submission_file()).unwrap_or_default();
    serde_json::from_slice(&text).is_ok_and(|submission: crate::submission::Submission| submission.keep)
}

fn settle_one(folder: &Folder, mut record: Record) -> Result<Option<Lost>> {
    // After a restart of the machine the state folder is gone as well, and with it everything that could be left.
    let _lock = if folder.state.is_dir() {
        match folder.try_lock()? {
            Some(lock) => Some(lock),
            None => return Ok(None),
        }
    } else {
        None
    };
    // It may have ended between the look at its record and the lock.
    if let Some(now) = Record::read(folder)? {
        if now.state.is_final() {
            crate::provision::release(folder)?;
            remove_state(folder)?;
            return Ok(None);
        }
        record = now;
    }
    let mut left = remove_containers(folder);
    if let Ok(layout) = Layout::detect() {
        remove_empty(&layout, &folder.id.to_string());
    }
    left.extend(crate::provision::release(folder).err().map(|error| error.to_string()));
    let pid = record.supervisor.map_or_else(|| "unknown".to_owned(), |process| process.pid.to_string());
    let explanation =
        format!("lost: its supervisor (process {pid}) was killed, and all of its tasks with it");
    for task in &mut record.tasks {
        if task.state.is_alive() {
            task.reason = Some("its supervisor was killed".to_owned());
        }
        if !task.state.is_final() {
            task.state = if task.state.is_alive() { TaskState::Failed } else { TaskState::Stopped };
        }
        task.process = None;
    }
    record.state = JobState::Lost;
    record.supervisor = None;
    record.ended = Some(Time::now());
    record.end = Some(End { explanation: explanation.clone(), exit_code: 125, task: None });
    release_reserve(folder);
    let detail = json!({ "exit_code": 125, "explanation": explanation, "state": "lost" });
    // The record is what counts; a full disk may keep the event out.
    let _ = Events::open(folder).map(|mut events| events.push(&Event::of_job(EventKind::Ended, detail)));
    record.write(folder, Durability::Disk)?;
    if left.is_empty() {
        remove_state(folder)?;
    }
    Ok(Some(Lost { id: folder.id.clone(), left }))
}

/// Removes folders that a killed command made and nobody filled.
fn forget(folder: &Folder) -> Result<()> {
    let made = |path: &std::path::Path| match std::fs::metadata(path).and_then(|data| data.modified()) {
        Ok(time) => Ok(Some(Time::now().since(Time::of(time)))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(machine("look at", path, &error)),
    };
    let ages = [made(&folder.state)?, made(&folder.record)?];
    let old = ages.into_iter().flatten().all(|age| age > FORGOTTEN);
    // A young one may be about to be locked by who submits it, whom a look at the lock must not come in the way of.
    if old && (!folder.state.is_dir() || folder.try_lock()?.is_some()) {
        remove_containers(folder);
        for path in [&folder.state, &folder.record] {
            if path.is_dir() {
                remove(path)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
