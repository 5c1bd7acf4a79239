//! The directory of a run on the file system that the nodes share.
//!
//! Beside the records, which are those of every job, it has short files that `jobc ps` reads from other hosts: the
//! events of a Slurm job and of each task, one a line.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use jobc_place::time::Time;
use jobc_place::verdict::Judgment;
use jobc_sys::error::{AtPath as _, Error, Kind, Result, file_error};
use jobc_sys::id::TaskId;

/// The run that a Slurm job belongs to.
#[derive(Clone, Debug)]
pub(crate) struct RunDirectory {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// The name of the batch script.
    pub(crate) script: String,
    /// How many attempts of each task had begun when this process began.
    earlier: BTreeMap<String, u32>,
    /// How many ranks the one step of a role has, where it has several.
    pub(crate) ranks: BTreeMap<String, u32>,
}

impl RunDirectory {
    /// Makes what does not exist yet. Files with secrets may be below it.
    pub(crate) fn create(path: &Path, script: &str) -> Result<Self> {
        let make = |path: &Path| DirBuilder::new().recursive(true).mode(0o700).create(path);
        for directory in ["", "events", "tasks", "state", "records", "logs", "jobs"] {
            let directory = path.join(directory);
            make(&directory).at_path("create the directory", &directory)?;
        }
        let earlier = earlier(&path.join("tasks"));
        Ok(Self { path: path.to_owned(), script: script.to_owned(), earlier, ranks: BTreeMap::new() })
    }

    /// Uses the directory that `jobc submit` made, in which each script has one Slurm job: of two, the first to start
    /// runs. Returns the other one if there is one.
    pub(crate) fn claim(&self, slurm_job: &str) -> Result<Option<String>> {
        let path = self.path.join("jobs").join(&self.script);
        let failed = |error: std::io::Error| file_error("write", &path, &error);
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => writeln!(file, "{slurm_job}").map(|()| None).map_err(failed),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let text = std::fs::read_to_string(&path).map_err(failed)?;
                Ok(Some(text.trim().to_owned()).filter(|other| !other.is_empty() && other != slurm_job))
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Whether its user has stopped it.
    pub(crate) fn is_stopped(&self) -> bool {
        self.path.join("stopped").exists()
    }

    /// Something happened to the Slurm job.
    pub(crate) fn note(&self, words: &str) {
        append(&self.path.join("events").join(&self.script), words);
    }

    /// A task's program runs on a node.
    pub(crate) fn task_started(&self, task: &TaskId, attempt: u32, node: &str, pid: u32) {
        let number = self.earlier(task) + attempt;
        append(&self.task(task), &format!("started {number} {node} {pid}"));
    }

    /// A task's attempt has ended.
    pub(crate) fn task_ended(&self, task: &TaskId, attempt: u32, code: u8) {
        let number = self.earlier(task) + attempt;
        append(&self.task(task), &format!("ended {number} {code}"));
    }

    /// A step has ended, and with it all of its ranks that have not said how they ended.
    pub(crate) fn step_ended(&self, task: &TaskId, attempt: u32, code: u8) {
        let Some(&ranks) = self.ranks.get(&task.role) else { return self.task_ended(task, attempt, code) };
        let ranks = (0..ranks).map(|index| TaskId::new(&task.role, index));
        for rank in ranks.filter(|rank| !self.has_ended(rank)) {
            self.task_ended(&rank, attempt, code);
        }
    }

    /// Whether nothing of a task runs, as far as is known.
    fn has_ended(&self, task: &TaskId) -> bool {
        let text = std::fs::read_to_string(self.task(task)).unwrap_or_default();
        text.lines().last().is_none_or(|line| line.contains(" ended ") || line.contains(" judged "))
    }

    /// The verdict on a task's attempt.
    pub(crate) fn task_judged(&self, task: &TaskId, attempt: u32, verdict: &Judgment) {
        let number = self.earlier(task) + attempt;
        if let Ok(verdict) = serde_json::to_string(verdict) {
            append(&self.task(task), &format!("judged {number} {verdict}"));
        }
    }

    /// How many attempts of a task had begun before.
    pub(crate) fn earlier(&self, task: &TaskId) -> u32 {
        self.earlier.get(&task.to_string()).copied().unwrap_or(0)
    }

    /// Whether all Slurm jobs of the run have ended, as far as they say.
    pub(crate) fn is_over(&self) -> bool {
        let scripts = std::fs::read_dir(self.path.join("target/slurm")).into_iter().flatten().flatten();
        let names = scripts.filter_map(|entry| entry.file_name().into_string().ok());
        names.filter_map(|name| name.strip_suffix(".sbatch").map(str::to_owned)).all(|name| {
            name == "array"
                || name == self.script
                || std::fs::read_to_string(self.path.join("events").join(name))
                    .is_ok_and(|text| text.lines().last().is_some_and(|line| line.contains(" ended ")))
        })
    }

    fn task(&self, task: &TaskId) -> PathBuf {
        self.path.join("tasks").join(task.to_string())
    }
}

/// Appends a line; what is lost on a full disk is in the records, too.
fn append(path: &Path, words: &str) {
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
    let line = format!("{} {words}\n", Time::now().millis() / 1000);
    let _ = file.and_then(|mut file: File| file.write_all(line.as_bytes()));
}

/// The attempts that have begun, by task.
fn earlier(tasks: &Path) -> BTreeMap<String, u32> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(tasks).into_iter().flatten().flatten() {
        let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
        let started = text.lines().filter(|line| line.contains(" started ")).count();
        if let Ok(name) = entry.file_name().into_string() {
            found.insert(name, u32::try_from(started).unwrap_or(u32::MAX));
        }
    }
    found
}

/// The value of a variable of Slurm.
pub(crate) fn variable(name: &str) -> Result<String> {
    std::env::var(name).map_err(|_| {
        Error::new(Kind::State, format!("no {name}: this is not a Slurm job"))
            .help("submit the batch script with `sbatch`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_counted_on_after_a_restart() {
        let place = tempfile::tempdir().unwrap();
        let task = TaskId::new("main", 1);
        for before in [0, 2] {
            let run = RunDirectory::create(place.path(), "job").unwrap();
            assert_eq!(run.earlier(&task), before);
            for attempt in 1..=2 {
                run.task_started(&task, attempt, "n0", 7);
                run.task_ended(&task, attempt, 9);
            }
        }
        let text = std::fs::read_to_string(place.path().join("tasks/main-1")).unwrap();
        let lines: Vec<&str> = text.lines().filter_map(|line| Some(line.split_once(' ')?.1)).collect();
        assert_eq!(lines[..2], ["started 1 n0 7", "ended 1 9"]);
        assert_eq!(lines[6..], ["started 4 n0 7", "ended 4 9"]);
    }

    #[test]
    fn the_first_slurm_job_of_a_script_runs() {
        let place = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(place.path(), "job").unwrap();
        assert_eq!(run.claim("12").unwrap(), None);
        assert_eq!(run.claim("12").unwrap(), None, "it starts again");
        assert_eq!(run.claim("13").unwrap().as_deref(), Some("12"));
    }

    #[test]
    fn a_run_is_over_with_its_last_slurm_job() {
        let place = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(place.path(), "b").unwrap();
        std::fs::create_dir_all(place.path().join("target/slurm")).unwrap();
        for name in ["a.sbatch", "b.sbatch", "array.sbatch"] {
            std::fs::write(place.path().join("target/slurm").join(name), "").unwrap();
        }
        assert!(!run.is_over());
        let other = RunDirectory { script: "a".to_owned(), ..run.clone() };
        other.note("started 0 7 n0");
        assert!(!run.is_over());
        other.note("ended 0");
        assert!(run.is_over());
    }
}
