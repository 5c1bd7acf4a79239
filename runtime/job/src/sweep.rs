//! Sweeps: the jobs of a file with a matrix, under one name.
//!
//! Each combination is a job of its own. A sweep is a file next to the jobs, `sweeps/<id>/sweep.json`, that names the
//! job of each combination; what the jobs do is in their own records. Its id has the form of a job's, and no job has the
//! same.

use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::time::Duration;

use indexmap::IndexMap;
use jobc_schema::Scalar;
use jobc_schema::matrix::combination_key;
use serde::{Deserialize, Serialize};

use crate::directory::{JobDirectories, replace, storage_error};
use jobc_place::time::Time;
use jobc_sys::error::{Error, Kind, Result, file_error};
use jobc_sys::id::JobId;
use jobc_sys::write_atomic::Durability;

/// How long a command may take from the directory of a sweep to its file.
const SUBMIT_TIMEOUT: Duration = Duration::from_mins(10);

/// The combinations of a sweep and their jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sweep {
    /// The version of this format, 1.
    pub version: u32,
    /// Its id.
    pub id: JobId,
    /// The job file, absolute.
    pub source: PathBuf,
    /// When it was submitted first.
    pub submitted: Time,
    /// Its combinations, by number.
    pub combinations: Vec<SweepCombination>,
}

/// A combination of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepCombination {
    /// The number, which is part of the job's name.
    pub number: u32,
    /// The values of the axes.
    pub values: IndexMap<String, Scalar>,
    /// The values that the job file writes in another way than JSON does, such as `1e-3`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub written: IndexMap<String, String>,
    /// The last job that ran it.
    pub job: JobId,
}

impl Sweep {
    /// A sweep without combinations; its directory is created, so that nothing else gets its id.
    ///
    /// # Errors
    ///
    /// The directory cannot be created.
    pub fn create(places: &JobDirectories, name: &str, source: PathBuf) -> Result<Self> {
        let parent = places.sweeps();
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&parent)
            .map_err(|error| storage_error("create the directory", &parent, &error))?;
        let taken = places.list()?.into_iter().chain(places.list_sweeps()?);
        let taken = taken.filter(|id| id.name == name).map(|id| id.run).max().unwrap_or(0);
        for run in taken + 1..=u32::MAX {
            let id = JobId { name: name.to_owned(), run };
            let directory = places.sweep(&id);
            match DirBuilder::new().mode(0o700).create(&directory) {
                Ok(()) => {
                    return Ok(Self { version: 1, id, source, submitted: Time::now(), combinations: vec![] });
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(storage_error("create the directory", &directory, &error)),
            }
        }
        Err(Error::new(Kind::State, format!("no run number is left for the sweep `{name}`"))
            .help("`jobc gc` removes old records"))
    }

    /// Reads a sweep; `None` if it does not exist or is being submitted.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is not of this version.
    pub fn read(places: &JobDirectories, id: &JobId) -> Result<Option<Self>> {
        let file = places.sweep(id).join(FILE);
        let text = match std::fs::read(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(file_error("read", &file, &error)),
        };
        serde_json::from_slice(&text).map(Some).map_err(|error| {
            let message = format!("`{}` is not a sweep of this version of jobc: {error}", file.display());
            Error::new(Kind::State, message)
                .help(format!("remove it with `jobc rm --force {id}`; its jobs stay"))
        })
    }

    /// The newest sweep of a name.
    ///
    /// # Errors
    ///
    /// As [`Self::read`].
    pub fn newest(places: &JobDirectories, name: &str) -> Result<Option<Self>> {
        let mut ids: Vec<JobId> = places.list_sweeps()?.into_iter().filter(|id| id.name == name).collect();
        ids.sort_by_key(|id| std::cmp::Reverse(id.run));
        for id in ids {
            if let Some(sweep) = Self::read(places, &id)? {
                return Ok(Some(sweep));
            }
        }
        Ok(None)
    }

    /// The sweep that a job belongs to, if it is still the job of its combination.
    pub fn of_job(places: &JobDirectories, job: &JobId, sweep: &JobId) -> Option<Self> {
        let sweep = Self::read(places, sweep).ok().flatten()?;
        sweep.combinations.iter().any(|combination| combination.job == *job).then_some(sweep)
    }

    /// Sets the job of a combination, which may be new.
    pub fn set_job(&mut self, number: u32, values: &IndexMap<String, Scalar>, job: JobId) {
        if let Some(known) = self.combinations.iter_mut().find(|known| known.number == number) {
            known.job = job;
        } else {
            let place = self.combinations.partition_point(|known| known.number < number);
            self.combinations.insert(place, SweepCombination::new(number, values, job));
        }
    }

    /// The combination with these values, in any order and spelling.
    pub fn combination(&self, values: &IndexMap<String, Scalar>) -> Option<&SweepCombination> {
        let key = combination_key(values);
        self.combinations.iter().find(|known| combination_key(&known.values) == key)
    }

    /// Writes the file of the sweep.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn write(&self, places: &JobDirectories) -> Result<()> {
        let text = serde_json::to_vec(self).expect("a sweep is plain JSON");
        replace(&places.sweep(&self.id).join(FILE), &text, Durability::Rename)
    }

    /// Removes the sweep, but not its jobs.
    ///
    /// # Errors
    ///
    /// The directory cannot be removed.
    pub fn remove(places: &JobDirectories, id: &JobId) -> Result<()> {
        jobc_container::remove::remove(&places.sweep(id))
    }
}

impl SweepCombination {
    /// A combination with the values as the job file writes them.
    pub fn new(number: u32, values: &IndexMap<String, Scalar>, job: JobId) -> Self {
        let has_other_text = |value: &Scalar| {
            let text = match &value.value {
                serde_json::Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            text != value.text
        };
        let written = values.iter().filter(|(_, value)| has_other_text(value));
        let written = written.map(|(axis, value)| (axis.clone(), value.text.clone())).collect();
        Self { number, values: values.clone(), written, job }
    }

    /// The value of an axis as the job file writes it; a combination of `include` may have none.
    pub fn text(&self, axis: &str) -> Option<&str> {
        let written = self.written.get(axis).map(String::as_str);
        written.or_else(|| self.values.get(axis).map(|value| value.text.as_str()))
    }
}

/// The name of a sweep's file in its directory.
const FILE: &str = "sweep.json";

/// Removes the sweeps of which no job exists any more. Files that cannot be read stay.
///
/// # Errors
///
/// The directories cannot be read, or one cannot be removed.
pub fn remove_empty(places: &JobDirectories) -> Result<()> {
    let jobs = places.list()?;
    for id in places.list_sweeps()? {
        let is_empty = match Sweep::read(places, &id) {
            Ok(Some(sweep)) => sweep
                .combinations
                .iter()
                .all(|known| jobs.binary_search_by(|id| compare(id, &known.job)).is_err()),
            Ok(None) => {
                let made = std::fs::metadata(places.sweep(&id)).and_then(|data| data.modified());
                made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age > SUBMIT_TIMEOUT))
            }
            Err(_) => false,
        };
        if is_empty {
            Sweep::remove(places, &id)?;
        }
    }
    Ok(())
}

/// The order of [`JobDirectories::list`].
fn compare(a: &JobId, b: &JobId) -> std::cmp::Ordering {
    (&a.name, a.run).cmp(&(&b.name, b.run))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> (tempfile::TempDir, JobDirectories) {
        let dir = tempfile::tempdir().unwrap();
        let places = JobDirectories { state: dir.path().join("s"), records: dir.path().join("r") };
        (dir, places)
    }

    fn values(text: &str) -> IndexMap<String, Scalar> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn no_job_has_the_id_of_a_sweep() {
        let (_dir, places) = places();
        places.create("tune").unwrap();
        let sweep = Sweep::create(&places, "tune", "/job.yaml".into()).unwrap();
        assert_eq!(sweep.id.to_string(), "tune.2");
        assert_eq!(places.create("tune").unwrap().id.to_string(), "tune.3");
        assert_eq!(Sweep::create(&places, "tune", "/job.yaml".into()).unwrap().id.to_string(), "tune.4");
    }

    #[test]
    fn a_sweep_knows_the_last_job_of_each_combination() {
        let (_dir, places) = places();
        let mut sweep = Sweep::create(&places, "tune", "/job.yaml".into()).unwrap();
        assert_eq!(Sweep::newest(&places, "tune").unwrap(), None, "it is just being submitted");
        let job = |name: &str| places.create(name).unwrap().id;
        sweep.set_job(1, &values(r#"{"lr": 0.1}"#), job("tune-1"));
        sweep.set_job(0, &values(r#"{"lr": 1}"#), job("tune-0"));
        sweep.set_job(1, &values(r#"{"lr": 0.1}"#), job("tune-1"));
        sweep.write(&places).unwrap();
        let read = Sweep::newest(&places, "tune").unwrap().unwrap();
        assert_eq!(read, sweep);
        let jobs: Vec<String> = read.combinations.iter().map(|known| known.job.to_string()).collect();
        assert_eq!(jobs, ["tune-0.1", "tune-1.2"]);
        assert_eq!(read.combination(&values(r#"{"lr": 1e-1}"#)).map(|known| known.number), Some(1));
        assert_eq!(Sweep::of_job(&places, &"tune-1.1".parse().unwrap(), &read.id), None, "it ran again");
        assert_eq!(Sweep::of_job(&places, &"tune-1.2".parse().unwrap(), &read.id), Some(read));
    }

    #[test]
    fn values_are_shown_as_they_were_written() {
        let written = Scalar { value: serde_json::json!(0.001), text: "1e-3".to_owned() };
        let values = IndexMap::from([("lr".to_owned(), written), ("n".to_owned(), Scalar::string("小"))]);
        let combination = SweepCombination::new(0, &values, "tune-0.1".parse().unwrap());
        let text = serde_json::to_string(&combination).unwrap();
        assert_eq!(
            text,
            r#"{"number":0,"values":{"lr":0.001,"n":"小"},"written":{"lr":"1e-3"},"job":"tune-0.1"}"#
        );
        let read: SweepCombination = serde_json::from_str(&text).unwrap();
        assert_eq!([read.text("lr"), read.text("n"), read.text("x")], [Some("1e-3"), Some("小"), None]);
    }

    #[test]
    fn a_sweep_goes_with_its_last_job() {
        let (_dir, places) = places();
        let mut sweep = Sweep::create(&places, "tune", "/job.yaml".into()).unwrap();
        let (first, second) = (places.create("tune-0").unwrap(), places.create("tune-1").unwrap());
        sweep.set_job(0, &values(r#"{"lr": 1}"#), first.id.clone());
        sweep.set_job(1, &values(r#"{"lr": 2}"#), second.id.clone());
        sweep.write(&places).unwrap();
        let just_created = Sweep::create(&places, "tune", "/job.yaml".into()).unwrap();
        first.remove().unwrap();
        remove_empty(&places).unwrap();
        assert_eq!(places.list_sweeps().unwrap(), [sweep.id.clone(), just_created.id.clone()]);
        second.remove().unwrap();
        remove_empty(&places).unwrap();
        assert_eq!(places.list_sweeps().unwrap(), [just_created.id]);
    }
}
