//! Where a job's files are.
//!
//! A job has two directories. The *state* directory holds what must not outlive the host's uptime: the lock that its
//! supervisor holds, the control socket, the built bundles, the containers' directories. The *record* directory holds
//! what users read later: `job.json` (a [`Record`](crate::record::Record)), `events.jsonl`, samples and logs. Both are
//! plain files that any later `jobc` reads; only the lock shows whether a job still runs, because the kernel releases
//! it with its holder.

mod storage;

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use jobc_container::secret_directory::SecretDirectory;
use jobc_container::state::store::Store;
use jobc_sys::error::{Error, Kind, Result, file_error};
use jobc_sys::id::{JobId, TaskId};
use jobc_sys::write_atomic::{Durability, write_atomic};
pub use storage::storage_error;

/// The name of the link in a job's record directory that leads to its state directory.
const STATE_LINK: &str = "state";

/// Where this user's jobs are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobDirectories {
    /// State of jobs, a directory each; gone after a restart of the host.
    pub state: PathBuf,
    /// Records of jobs, a directory each; they stay.
    pub records: PathBuf,
}

/// The directories of one job. They need not exist.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Directory {
    /// The job.
    pub id: JobId,
    /// Its state directory.
    pub state: PathBuf,
    /// Its record directory.
    pub record: PathBuf,
}

impl JobDirectories {
    /// The places of this user: state next to the containers' ([`Store::standard`]), records in `$XDG_STATE_HOME/jobc`,
    /// which is `~/.local/state/jobc` where the variable is not set (XDG Base Directory Specification).
    pub fn standard() -> Result<Self> {
        let containers = Store::standard()?;
        let state = containers.root().with_file_name("jobs");
        let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home =
            variable("XDG_STATE_HOME").or_else(|| variable("HOME").map(|home| home.join(".local/state")));
        let home = home.ok_or_else(|| {
            Error::new(Kind::System, "no directory for job records: neither XDG_STATE_HOME nor HOME is set")
                .help("set `HOME`, or `XDG_STATE_HOME` to a directory that you may write to")
        })?;
        Ok(Self { state, records: home.join("jobc/jobs") })
    }

    /// The directories of a job.
    ///
    /// Its state is where the command that started it created it: a command under cron(8) or su(1) has no
    /// `XDG_RUNTIME_DIR`, or another user's, and must not treat a job as lost because it searches another directory.
    pub fn job(&self, id: &JobId) -> Directory {
        let name = id.to_string();
        let record = self.records.join(&name);
        let is_own = |state: &PathBuf| {
            let uid = rustix::process::geteuid().as_raw();
            state.is_absolute()
                && state.ends_with(&name)
                && std::fs::symlink_metadata(state).is_ok_and(|status| status.is_dir() && status.uid() == uid)
        };
        let state = std::fs::read_link(record.join(STATE_LINK)).ok().filter(is_own);
        Directory { id: id.clone(), state: state.unwrap_or_else(|| self.state.join(&name)), record }
    }

    /// Creates the directories of a new run of a job, with the next number.
    ///
    /// The record directory's making is what takes the number, so that two commands at once get two numbers.
    pub fn create(&self, name: &str) -> Result<Directory> {
        for parent in [&self.state, &self.records] {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(parent);
            made.map_err(|error| storage_error("create the directory", parent, &error))?;
        }
        let taken = self.list()?.into_iter().chain(self.list_sweeps()?);
        let taken = taken.filter(|id| id.name == name).map(|id| id.run).max().unwrap_or(0);
        for run in taken + 1..=u32::MAX {
            let id = JobId { name: name.to_owned(), run };
            let (state, record) = (self.state.join(id.to_string()), self.records.join(id.to_string()));
            let directory = Directory { id, state, record };
            match DirBuilder::new().mode(0o700).create(&directory.record) {
                Ok(()) => {
                    let made = DirBuilder::new().mode(0o700).create(&directory.state);
                    let Err(error) = made else {
                        let link = directory.record.join(STATE_LINK);
                        symlink(&directory.state, &link)
                            .map_err(|error| storage_error("create the link", &link, &error))?;
                        return Ok(directory);
                    };
                    let _ = std::fs::remove_dir(&directory.record);
                    // The same user with another record directory has taken the number meanwhile.
                    if error.kind() != ErrorKind::AlreadyExists {
                        return Err(storage_error("create the directory", &directory.state, &error));
                    }
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(storage_error("create the directory", &directory.record, &error)),
            }
        }
        Err(Error::new(Kind::State, format!("no run number is left for the job `{name}`"))
            .help("`jobc gc` removes old records"))
    }

    /// The ids of all jobs that have a record or state, by name and run.
    pub fn list(&self) -> Result<Vec<JobId>> {
        ids_in(&[&self.records, &self.state])
    }

    /// The directory of all sweeps ([`crate::sweep::Sweep`]).
    pub fn sweeps(&self) -> PathBuf {
        self.records.with_file_name("sweeps")
    }

    /// The directory of a sweep.
    pub fn sweep(&self, id: &JobId) -> PathBuf {
        self.sweeps().join(id.to_string())
    }

    /// The ids of all sweeps, by name and run.
    pub fn list_sweeps(&self) -> Result<Vec<JobId>> {
        ids_in(&[&self.sweeps()])
    }

    /// The job that a user names: an id (`train.2`), or a name, which is its newest run.
    pub fn find(&self, word: &str) -> Result<Directory> {
        let ids = self.list()?;
        let wanted = match word.parse::<JobId>() {
            Ok(id) => ids.contains(&id).then_some(id),
            Err(_) => ids.iter().filter(|id| id.name == word).max_by_key(|id| id.run).cloned(),
        };
        wanted.map(|id| self.job(&id)).ok_or_else(|| {
            Error::new(Kind::NotFound, format!("there is no job `{}`", word.escape_debug()))
                .help("`jobc ps --all` lists the jobs of this user")
        })
    }
}

/// The ids that directories are named by, in order.
fn ids_in(parents: &[&Path]) -> Result<Vec<JobId>> {
    let mut ids = Vec::new();
    for parent in parents {
        let entries = match std::fs::read_dir(parent) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(file_error("read the directory", parent, &error)),
        };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        ids.extend(names.filter_map(|name| name.parse::<JobId>().ok()));
    }
    ids.sort_by(|a, b| (&a.name, a.run).cmp(&(&b.name, b.run)));
    ids.dedup();
    Ok(ids)
}

impl Directory {
    /// Where the jobs of this user are.
    pub(crate) fn parents(&self) -> JobDirectories {
        let parent = |path: &Path| path.parent().unwrap_or(path).to_owned();
        JobDirectories { state: parent(&self.state), records: parent(&self.record) }
    }

    /// The job's record ([`crate::record::Record`]).
    pub fn record_file(&self) -> PathBuf {
        self.record.join("job.json")
    }

    /// Its events, one per line ([`crate::event::Event`]).
    pub fn events_file(&self) -> PathBuf {
        self.record.join("events.jsonl")
    }

    /// The resource usage of its tasks, one line per sample ([`crate::metrics`]).
    pub fn samples_file(&self) -> PathBuf {
        self.record.join("samples.jsonl")
    }

    /// The plan of the run, schema `plan.v1`, of this one job.
    pub fn plan_file(&self) -> PathBuf {
        self.record.join("plan.json")
    }

    /// The text of the job file of the run; absent if it was run from a built plan.
    pub fn job_file(&self) -> PathBuf {
        self.record.join("job-file")
    }

    /// The origin of the run ([`crate::origin::Origin`]).
    pub fn origin_file(&self) -> PathBuf {
        self.record.join("origin.json")
    }

    /// The logs of a task: numbered parts, see [`crate::logs`].
    pub fn logs(&self, task: &TaskId) -> PathBuf {
        self.record.join("logs").join(task.to_string())
    }

    /// The request to its supervisor ([`crate::submission::Submission`]).
    pub fn submission_file(&self) -> PathBuf {
        self.state.join("submission.json")
    }

    /// The output of `jobc build` for the run.
    pub fn build(&self) -> PathBuf {
        self.state.join("build")
    }

    /// The bundle of a task, as it was built.
    pub fn bundle(&self, task: &TaskId) -> PathBuf {
        self.build().join("oci").join(task.to_string())
    }

    /// Path of its secret files. Nothing is created yet.
    pub fn secrets(&self) -> Result<SecretDirectory> {
        SecretDirectory::for_state(&self.state, &self.id.to_string())
    }

    /// The containers of its tasks; a container's id is `<job id>.<task>`, so that one name is enough.
    pub fn containers(&self) -> Store {
        Store::new(self.state.join("containers"))
    }

    /// The socket that its supervisor listens on ([`crate::control`]).
    pub fn control_socket(&self) -> PathBuf {
        self.state.join("control")
    }

    /// Takes the lock that marks the job as supervised; `None` if another process holds it.
    ///
    /// It lasts as long as the file is open in this process.
    pub fn try_lock(&self) -> Result<Option<File>> {
        let path = self.state.join("lock");
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
        let file = file.map_err(|error| storage_error("open", &path, &error))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(file)),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(Error::system(format!("lock `{}`", path.display()), errno)),
        }
    }

    /// Removes all files of the job, the record last: commands find the job by its record.
    pub fn remove(&self) -> Result<()> {
        jobc_container::remove::remove(&self.state)?;
        jobc_container::remove::remove(&self.record)
    }

    /// Whether a supervisor runs.
    pub fn is_supervised(&self) -> bool {
        self.state.is_dir() && matches!(self.try_lock(), Ok(None))
    }
}

/// Replaces a file in one step: readers see the old content or the new.
pub fn replace(path: &Path, bytes: &[u8], durability: Durability) -> Result<()> {
    write_atomic(path, bytes, 0o600, durability).map_err(|error| storage_error("write", path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> (tempfile::TempDir, JobDirectories) {
        let dir = tempfile::tempdir().unwrap();
        let places = JobDirectories { state: dir.path().join("s"), records: dir.path().join("r") };
        (dir, places)
    }

    #[test]
    fn runs_are_numbered_and_a_name_means_the_newest() {
        let (_dir, places) = places();
        for expected in ["train.1", "train.2"] {
            assert_eq!(places.create("train").unwrap().id.to_string(), expected);
        }
        places.create("train-0").unwrap();
        assert_eq!(places.find("train").unwrap().id.to_string(), "train.2");
        assert_eq!(places.find("train.1").unwrap().id.to_string(), "train.1");
        assert_eq!(places.find("nope").unwrap_err().to_string(), "there is no job `nope`");
        let all: Vec<String> = places.list().unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(all, ["train.1", "train.2", "train-0.1"]);
    }

    #[test]
    fn two_commands_at_once_get_two_numbers() {
        let (_dir, places) = places();
        let mut ids: Vec<String> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..8).map(|_| scope.spawn(|| places.create("a").unwrap().id.to_string())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        ids.sort();
        assert_eq!(ids, (1..=8).map(|run| format!("a.{run}")).collect::<Vec<_>>());
    }

    #[test]
    fn a_command_with_another_place_for_state_finds_the_job_where_it_is() {
        let (dir, places) = places();
        let directory = places.create("a").unwrap();
        let _lock = directory.try_lock().unwrap().unwrap();
        let other = JobDirectories { state: dir.path().join("other"), ..places.clone() };
        assert_eq!(other.find("a").unwrap(), directory);
        assert!(other.find("a").unwrap().is_supervised());
        // Gone with a restart of the host, it is nowhere; nor is it what the link leads to by another name.
        std::fs::remove_dir_all(&directory.state).unwrap();
        assert_eq!(other.job(&directory.id).state, other.state.join("a.1"));
        let link = directory.record.join(STATE_LINK);
        std::fs::remove_file(&link).unwrap();
        symlink(dir.path(), &link).unwrap();
        assert_eq!(places.job(&directory.id), directory);
    }

    #[test]
    fn the_lock_says_whether_there_is_a_supervisor() {
        let (_dir, places) = places();
        let directory = places.create("a").unwrap();
        assert!(!directory.is_supervised());
        let lock = directory.try_lock().unwrap().unwrap();
        assert!(directory.is_supervised());
        drop(lock);
        assert!(!directory.is_supervised());
    }
}
