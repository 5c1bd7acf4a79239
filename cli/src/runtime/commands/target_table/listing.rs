//! Several targets, queried at the same time: one that is down or slow does not hide the others.

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use jobc_place::job::JobSummary;
use jobc_remote::RemotePlace;
use jobc_sys::error::{Error, Kind};

use super::TargetTable;
use crate::runtime::commands::jobs::{Failure, Result};
use crate::runtime::message::container_warning;
use crate::terminal;

/// Timeout for each of several targets.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The result for a target: its name and its answer.
type Answered<T> = (String, Result<T>);

/// Adds the jobs of a target, or of all targets that can be reached; returns the error of one that cannot.
pub(crate) fn list(
    target: Option<&str>,
    found: &mut Vec<(Option<String>, JobSummary)>,
) -> Result<Option<Failure>> {
    let table = TargetTable::read(None)?;
    let names = target.map_or_else(|| table.clusters(), |target| vec![target]);
    let mut last_error = None;
    for (name, listed) in of_each(&table, &names, |place| place.list()) {
        match listed {
            Ok(jobs) => found.extend(jobs.into_iter().map(|job| (Some(name.clone()), job))),
            // One may not be reachable; the jobs of the others, and of this host, are shown all the same.
            Err(error) if names.len() > 1 || !found.is_empty() => {
                terminal::eprint(&container_warning(&format!("target `{name}`: {}", error.message())));
                last_error = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(last_error)
}

/// Asks targets the same, in the order of the names. With several targets, a timeout is an error; a single target has
/// no timeout.
pub(crate) fn of_each<T: Send + 'static>(
    table: &TargetTable,
    names: &[&str],
    ask: fn(&dyn RemotePlace) -> jobc_sys::error::Result<T>,
) -> Vec<Answered<T>> {
    if let [name] = names {
        let answer = table.place(name).and_then(|place| ask(&*place).map_err(Failure::from));
        return vec![((*name).to_owned(), answer)];
    }
    let (sender, receiver) = channel();
    let mut found: Vec<Option<Result<T>>> = names.iter().map(|_| None).collect();
    for (index, name) in names.iter().enumerate() {
        match table.place(name) {
            Ok(place) => {
                let sender = sender.clone();
                // Left behind when it takes too long: it ends with the program.
                std::thread::spawn(move || sender.send((index, ask(&*place).map_err(Failure::from))));
            }
            Err(error) => found[index] = Some(Err(error)),
        }
    }
    drop(sender);
    let deadline = Instant::now() + TIMEOUT;
    // Until all have answered, or the time is over.
    while let Ok((index, answer)) = receiver.recv_timeout(deadline.saturating_duration_since(Instant::now()))
    {
        found[index] = Some(answer);
    }
    let late = || Error::new(Kind::System, format!("it has not answered after {} s", TIMEOUT.as_secs()));
    let found = found.into_iter().map(|answer| answer.unwrap_or_else(|| Err(late().into())));
    names.iter().map(|name| (*name).to_owned()).zip(found).collect()
}
