//! `jobc ps --queue`: who holds the resources of this host, and who waits for whom.

use std::process::ExitCode;
use std::time::Duration;

use jobc_gpu::{Host, Inventory};
use jobc_job::admission::capacity::Capacity;
use jobc_job::admission::ledger::Ledger;
use jobc_job::admission::queue;
use jobc_place::queue::QueueRow;
use jobc_place::time::{Time, format_duration};
use jobc_sys::accounts;

use super::jobs::{Jobs, Result, print_list};
use crate::args::FormatArg;
use crate::table::Table;
use crate::terminal;

/// The most jobs that are named in a row.
const MAX_NAMED: usize = 3;

pub(super) fn print(format: FormatArg) -> Result<ExitCode> {
    let jobs = Jobs::open()?;
    let ledger = Ledger::standard(jobs.directories())?;
    let gpus = Inventory::discover(&Host::here());
    let state = &jobs.directories().state;
    // The first job of this user creates the directory for state.
    let place = if state.exists() { state } else { ledger.directory() };
    let capacity = Capacity::of_host(place)?.with_gpus(gpus);
    let rows = queue::rows(&ledger, &capacity, Time::now().millis() / 1000)?;
    print_list(format, &rows, || table(&rows, &accounts::read_file("/etc/passwd").unwrap_or_default()));
    if let Some(note) = ledger.note.iter().find(|_| format != FormatArg::Json) {
        terminal::eprint(&format!("jobc: {note}\n"));
    }
    Ok(ExitCode::SUCCESS)
}

fn table(rows: &[QueueRow], passwd: &str) -> Table {
    let mut table =
        Table::new(["PLACE", "JOB", "USER", "PRIORITY", "RESOURCES", "WAITS FOR", "AT THE LATEST"]);
    for row in rows {
        let when = row.seconds.map(|seconds| format_duration(Duration::from_secs(seconds)));
        let word = if row.place.is_some() { "starts" } else { "ends" };
        table.row([
            row.place.map_or_else(|| "has".to_owned(), |place| place.to_string()),
            row.job.clone(),
            accounts::name_of(passwd, row.user).unwrap_or_else(|| row.user.to_string()),
            row.priority.to_string(),
            row.resources.clone(),
            named(&row.waits_for),
            when.map_or_else(|| "-".to_owned(), |when| format!("{word} in {when}")),
        ]);
    }
    table
}

/// The first jobs, and the number of the others.
fn named(jobs: &[String]) -> String {
    let mut text = jobs.iter().take(MAX_NAMED).cloned().collect::<Vec<_>>().join(", ");
    if jobs.len() > MAX_NAMED {
        text += &format!(" and {} more", jobs.len() - MAX_NAMED);
    }
    if text.is_empty() { "-".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_jobs_are_counted() {
        let jobs: Vec<String> = (1..=5).map(|run| format!("a.{run}")).collect();
        assert_eq!(named(&jobs), "a.1, a.2, a.3 and 2 more");
        assert_eq!((named(&jobs[..2]).as_str(), named(&[]).as_str()), ("a.1, a.2", "-"));
    }
}
