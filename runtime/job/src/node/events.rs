//! The events that jobc on the nodes has written in the records of a run, for `jobc events` elsewhere.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use jobc_place::event::Event;
use jobc_sys::error::Result;
use jobc_sys::id::JobId;

use crate::directory::Directory;
use crate::local_place::events;

/// The hidden command: `jobc node-events RUN` prints an event a line.
pub const COMMAND: &str = "node-events";

/// Prints the events of a run.
pub fn main(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let Some(run) = words.next().map(PathBuf::from) else { return ExitCode::from(2) };
    let lines = of_run(&run).into_iter().filter_map(|event| serde_json::to_string(&event).ok());
    let text: String = lines.map(|line| line + "\n").collect();
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// The events of all starts, by start. Attempts are counted over them, as `tasks` does.
fn of_run(run: &Path) -> Vec<Event> {
    let records = run.join("records");
    let entries = std::fs::read_dir(&records).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok()?.parse::<JobId>().ok());
    let mut ids: Vec<JobId> = names.collect();
    ids.sort_by_key(|id| id.run);
    let (mut all, mut earlier) = (Vec::new(), BTreeMap::<String, u32>::new());
    for id in ids {
        let record = records.join(id.to_string());
        let events = of_record(&Directory { state: record.clone(), id, record }).unwrap_or_default();
        let mut attempts = earlier.clone();
        for mut event in events.into_iter().filter(|event| event.event != "sampled") {
            if let (Some(task), Some(attempt)) = (&event.task, &mut event.attempt) {
                *attempt += earlier.get(task).copied().unwrap_or(0);
                let last = attempts.entry(task.clone()).or_default();
                *last = (*last).max(*attempt);
            }
            all.push(event);
        }
        earlier = attempts;
    }
    all
}

fn of_record(directory: &Directory) -> Result<Vec<Event>> {
    let mut found = Vec::new();
    events::read(directory, None, &mut |event| {
        found.push(event.clone());
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{self, EventLog, Kind};
    use serde_json::json;

    #[test]
    fn attempts_are_counted_over_the_starts_of_a_job() {
        let run = tempfile::tempdir().unwrap();
        for number in 1..=2 {
            let id = JobId { name: "job".to_owned(), run: number };
            let record = run.path().join("records").join(id.to_string());
            std::fs::create_dir_all(&record).unwrap();
            let mut log = EventLog::open(&Directory { state: record.clone(), id, record }).unwrap();
            for attempt in 1..=2 {
                let task = "main-0".parse().unwrap();
                log.push(&event::Event::of_task(Kind::Ended, task, attempt, json!({"exit_code": 7})))
                    .unwrap();
            }
        }
        let found = of_run(run.path());
        let attempts: Vec<u32> = found.iter().filter_map(|event| event.attempt).collect();
        assert_eq!(attempts, [1, 2, 3, 4]);
        assert!(found.iter().all(|event| event.is_warning && event.event == "ended"), "{found:?}");
    }
}
