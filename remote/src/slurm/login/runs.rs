//! The directories of runs, and the queue.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use jobc_sys::error::file_error;
use serde::{Deserialize, Serialize};

use super::commands;
use super::fault::Fault;
use super::question::{Login, Question};
use crate::slurm::queue::{self, QueueRow};
use crate::slurm::snapshot::RunFiles;

/// What runs say about themselves, and what Slurm says.
#[derive(Default, Deserialize, Serialize)]
pub(crate) struct List {
    pub(crate) asks_slurm: bool,
    pub(crate) with_tasks: bool,
    /// Only those of a job, by the beginning of their names.
    pub(crate) job: Option<String>,
    /// Only these, if any are named.
    pub(crate) runs: Vec<String>,
}

/// The runs by name, and the user's Slurm jobs by id.
#[derive(Default, Deserialize, Serialize)]
pub(crate) struct Listed {
    pub(crate) runs: BTreeMap<String, RunFiles>,
    pub(crate) queue: BTreeMap<String, QueueRow>,
}

impl Question for List {
    type Answer = Listed;

    fn answer(self, login: &Login) -> Result<Listed, Fault> {
        let names = if self.runs.is_empty() { names(&login.runs(), self.job.as_deref()) } else { self.runs };
        let mut listed = Listed::default();
        for name in names {
            let files = RunFiles::read(&login.run(&name), self.with_tasks);
            if files.exists() {
                listed.runs.insert(name, files);
            }
        }
        if self.asks_slurm {
            listed.queue = queue::parse(&queue(None)?.answer()?);
        }
        Ok(listed)
    }
}

/// The user's Slurm jobs, those that have ended until Slurm forgets them; or some of them.
pub(super) fn queue(ids: Option<&str>) -> Result<commands::Reply, Fault> {
    let (user, format) = (format!("--user={}", commands::uid()), format!("--format={}", queue::FORMAT));
    let jobs = ids.map(|ids| format!("--jobs={ids}"));
    let mut words = vec!["squeue", &user, "--states=all", "--array", "--noheader", &format];
    words.extend(jobs.as_deref());
    commands::ask(&words)
}

/// The names of the directories, or of those of a job.
fn names(runs: &Path, job: Option<&str>) -> Vec<String> {
    let names = fs::read_dir(runs).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let names = names.filter_map(|name| name.into_string().ok()).filter(|name| !name.starts_with('.'));
    let is_of = |name: &String| {
        job.is_none_or(|job| name.strip_prefix(job).is_some_and(|rest| rest.starts_with('-')))
    };
    names.filter(is_of).collect()
}

/// The events that jobc has written in the records of a run, as `jobc events --format json` prints them.
#[derive(Deserialize, Serialize)]
pub(crate) struct Journal(pub(crate) String);

impl Question for Journal {
    type Answer = String;

    fn answer(self, login: &Login) -> Result<String, Fault> {
        let run = login.run(&self.0);
        if !run.join("records").is_dir() {
            return Ok(String::new());
        }
        let mut command = std::process::Command::new("/proc/self/exe");
        command.arg("node-events").arg(&run);
        Ok(commands::run(command, None)?.check()?.text)
    }
}

/// Removes values of secrets: those that were submitted, and files with them that tasks made.
#[derive(Deserialize, Serialize)]
pub(crate) struct Forget(pub(crate) Vec<String>);

impl Question for Forget {
    type Answer = ();

    fn answer(self, login: &Login) -> Result<(), Fault> {
        for name in &self.0 {
            for part in ["secrets", "etc", "bundles"] {
                let _ = fs::remove_dir_all(login.run(name).join(part));
            }
        }
        Ok(())
    }
}

/// Removes the directory of a run.
#[derive(Deserialize, Serialize)]
pub(crate) struct Remove(pub(crate) String);

impl Question for Remove {
    type Answer = ();

    fn answer(self, login: &Login) -> Result<(), Fault> {
        let run = login.run(&self.0);
        if !run.join("job.json").exists() && !run.join("jobs").exists() {
            return Err(Fault::NoRun);
        }
        // Without its record it is not a run.
        let _ = fs::remove_file(run.join("job.json"));
        // Files that are still open on NFS are gone a moment later.
        for _ in 0..5 {
            if fs::remove_dir_all(&run).is_ok() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(500));
        }
        fs::remove_dir_all(&run).map_err(|error| file_error("remove", &run, &error).into())
    }
}

/// The addresses that the script of a group wrote, or the number of its Slurm job, and the plan.
#[derive(Deserialize, Serialize)]
pub(crate) struct Ports {
    pub(crate) run: String,
    pub(crate) group: String,
}

impl Question for Ports {
    type Answer = (String, String);

    fn answer(self, login: &Login) -> Result<(String, String), Fault> {
        let run = login.run(&self.run);
        let plan = fs::read_to_string(run.join("target/plan.json")).map_err(|_| Fault::NoRun)?;
        let addresses = fs::read_to_string(run.join(format!("state/{}.addresses", self.group)));
        if let Some(known) = addresses.ok().filter(|text| text.contains("jobc_port=")) {
            return Ok((known, plan));
        }
        let id = fs::read_to_string(run.join("jobs").join(&self.group)).unwrap_or_default();
        let jobs = format!("--jobs={}", id.trim());
        let said = commands::ask(&["squeue", "--noheader", &jobs, "--format=job=%A"])?;
        Ok((said.text, plan))
    }
}
