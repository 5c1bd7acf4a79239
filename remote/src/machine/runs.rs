//! Runs and jobs of the host: which run has which job.

use std::collections::BTreeSet;

use jobc_sys::error::{Error, Kind, Result};
use serde::{Deserialize, Serialize};

use super::answers::{parse, succeeded};
use super::program::{Connection, TIMEOUT};
use super::record::ListedJob;
use super::scripts::LIST;
use crate::identity::is_suffix;
use crate::place::{JobState, JobSummary, TaskCounts};

/// The content of `run.json` in the directory of a run; one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RunInfo {
    /// The name of the run.
    pub(super) name: String,
    /// The name in the job file.
    pub(super) job: String,
    /// The digest of the job, as in [`crate::identity::Identity::label`].
    pub(super) digest: String,
    /// The user who submitted it.
    pub(super) user: String,
    /// How many tasks it has.
    pub(super) tasks: u64,
    /// Its outputs below the directory of the job file.
    #[serde(default)]
    pub(super) outputs: Vec<String>,
    /// What is kept of its plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) outline: Option<String>,
}

/// A job of the host. Jobs that were started there by hand have no run.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) run: Option<RunInfo>,
    pub(super) job: Option<ListedJob>,
}

impl Entry {
    /// The id of the job there.
    pub(super) fn id(&self) -> Option<&str> {
        self.job.as_ref().map(|job| job.id.as_str())
    }

    /// The job as the place shows it.
    pub(super) fn summary(&self) -> JobSummary {
        let run = self.run.as_ref();
        let Some(job) = &self.job else {
            let wanted = run.map(|run| run.tasks).unwrap_or_default();
            let name = run.map(|run| run.name.clone()).unwrap_or_default();
            let job = run.map(|run| run.job.clone()).unwrap_or_default();
            return JobSummary {
                kind: "job".to_owned(),
                tasks: TaskCounts { wanted, ..TaskCounts::default() },
                user: run.map(|run| run.user.clone()),
                is_complete: false,
                plan: run.map(|run| run.digest.clone()),
                outline: run.and_then(|run| run.outline.clone()),
                ..JobSummary::new(name, job, JobState::Pending)
            };
        };
        let own_name = job.id.rsplit_once('.').map_or(job.id.as_str(), |(name, _)| name);
        JobSummary {
            name: run.map_or_else(|| job.id.clone(), |run| run.name.clone()),
            job: run.map_or_else(|| own_name.to_owned(), |run| run.job.clone()),
            user: run.map(|run| run.user.clone()),
            plan: run.map(|run| run.digest.clone()),
            outline: run.and_then(|run| run.outline.clone()),
            ..job.summary()
        }
    }
}

/// The runs and jobs on the host.
#[derive(Clone, Debug, Default)]
pub(super) struct Listing {
    /// All jobs, the newest first; runs whose job was not started yet come before them.
    pub(super) entries: Vec<Entry>,
    /// The names of runs that are taken.
    pub(super) names: BTreeSet<String>,
    /// Programs that the host lacks.
    pub(super) missing: Vec<String>,
}

/// Lists what there is.
pub(super) fn list(connection: &Connection) -> Result<Listing> {
    let program = connection.program()?.to_owned();
    let words = [LIST, "sh", &connection.directory, &program];
    let output = succeeded(connection.name(), connection.script(&words, None, TIMEOUT)?)?;
    read(connection.name(), &output.stdout)
}

fn read(host: &str, text: &[u8]) -> Result<Listing> {
    const END: &[u8] = b"jobs\n";
    let at_start = text.starts_with(END).then_some(0);
    let at = at_start
        .or_else(|| text.windows(END.len() + 1).position(|part| part[0] == b'\n' && &part[1..] == END));
    let at = at.ok_or_else(|| Error::new(Kind::System, format!("`{host}` does not list its jobs")))?;
    let at = if text.starts_with(END) { at } else { at + 1 };
    let mut jobs: Vec<ListedJob> = parse(host, &text[at + END.len()..])?;
    let (mut entries, mut names, mut missing) = (Vec::new(), BTreeSet::new(), Vec::new());
    for line in String::from_utf8_lossy(&text[..at]).lines() {
        let Some((id, run)) = (match line.split_once(' ') {
            Some(("run", run)) => run.split_once(' '),
            Some(("name", name)) => {
                names.insert(name.to_owned());
                None
            }
            Some(("missing", tool)) => {
                missing.push(tool.to_owned());
                None
            }
            _ => None,
        }) else {
            continue;
        };
        let Ok(run) = serde_json::from_str::<RunInfo>(run) else { continue };
        let prefix = format!("{}.", run.name);
        let is_of_run = |job: &ListedJob| if id == "-" { job.id.starts_with(&prefix) } else { job.id == id };
        let job = jobs.iter().position(is_of_run).map(|at| jobs.remove(at));
        // A job whose record was removed there has ended; its name stays taken.
        if job.is_some() || id == "-" {
            entries.push(Entry { run: Some(run), job });
        }
    }
    entries.extend(jobs.into_iter().map(|job| Entry { run: None, job: Some(job) }));
    let submitted = |entry: &Entry| entry.job.as_ref().map(|job| job.submitted);
    entries.sort_by(|a, b| match (submitted(a), submitted(b)) {
        (None, Some(_)) => std::cmp::Ordering::Less,
        (Some(_), None) => std::cmp::Ordering::Greater,
        (a, b) => b.cmp(&a),
    });
    Ok(Listing { entries, names, missing })
}

/// The job of a name: a run, an id of the host, or the newest run of a job.
pub(super) fn find(connection: &Connection, name: &str) -> Result<Entry> {
    let entries = list(connection)?.entries;
    let is_named =
        |entry: &Entry| entry.run.as_ref().is_some_and(|run| run.name == name) || entry.id() == Some(name);
    let is_of_job = |entry: &Entry| entry.summary().job == name;
    let found = entries
        .iter()
        .find(|entry| is_named(entry))
        .or_else(|| entries.iter().find(|entry| is_of_job(entry)));
    found.cloned().ok_or_else(|| {
        Error::new(Kind::NotFound, format!("there is no job `{name}` on `{}`", connection.name()))
            .help("`jobc ps --all --target TARGET` lists the jobs there")
    })
}

/// The arguments with which `jobc` on the host identifies the job of a name.
pub(super) fn id(connection: &Connection, name: &str) -> Result<String> {
    // The run's name is the name of a job there, and an id is one.
    let is_exact = |(_, end): (&str, &str)| is_suffix(end);
    if name.contains('.') || name.rsplit_once('-').is_some_and(is_exact) {
        return Ok(name.to_owned());
    }
    let entry = find(connection, name)?;
    entry.id().map(str::to_owned).ok_or_else(|| not_started(name))
}

/// The error of a run whose submission was broken off.
pub(super) fn not_started(name: &str) -> Error {
    Error::new(Kind::State, format!("the submission of `{name}` is not complete"))
        .help("the same `jobc submit` completes it")
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOBS: &str = r#"[
        {"id": "gpt-7f3k2.1", "state": "running", "submitted": "2026-01-01T00:00:00Z", "tasks": {"running": 1, "waiting": 2}},
        {"id": "hand.3", "state": "failed", "submitted": "2026-01-02T00:00:00Z", "tasks": {"failed": 1}}
    ]"#;

    fn run(name: &str) -> String {
        format!(r#"{{"name":"{name}","job":"gpt","digest":"ab","user":"ann","tasks":3}}"#)
    }

    fn check(runs: &[(&str, &str)], expected: &[(&str, &str, JobState, bool)]) {
        let lines: String =
            runs.iter().map(|(id, name)| format!("name {name}\nrun {id} {}\n", run(name))).collect();
        let listing = read("box", format!("missing flock\n{lines}jobs\n{JOBS}").as_bytes()).unwrap();
        assert_eq!(listing.missing, ["flock"]);
        assert_eq!(listing.names.len(), runs.len());
        let entries = listing.entries;
        let found: Vec<_> = entries.iter().map(Entry::summary).collect();
        let found: Vec<_> = found
            .iter()
            .map(|job| (job.name.as_str(), job.job.as_str(), job.state, job.is_complete))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_run_has_its_job_and_other_jobs_are_listed_too() {
        let hand = ("hand.3", "hand", JobState::Failed, true);
        let gpt = ("gpt-7f3k2", "gpt", JobState::Running, true);
        check(&[("gpt-7f3k2.1", "gpt-7f3k2")], &[hand, gpt]);
        // Its id was not written down: the job is found by its name.
        check(&[("-", "gpt-7f3k2")], &[hand, gpt]);
        // One was not started, and the record of another one was removed.
        let own = ("gpt-7f3k2.1", "gpt-7f3k2", JobState::Running, true);
        check(
            &[("-", "gpt-bbbbb"), ("gpt-ccccc.1", "gpt-ccccc")],
            &[("gpt-bbbbb", "gpt", JobState::Pending, false), hand, own],
        );
        assert!(read("box", b"nothing").is_err());
    }
}
