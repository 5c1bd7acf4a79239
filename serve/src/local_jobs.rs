//! The list of the jobs of this host: 10,000 of them are read once, and again where their records change.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use camino::Utf8PathBuf;
use jobc_job::directory::Directory;
use jobc_job::local_place::{LocalPlace, summary};
use jobc_job::record::Record;
use jobc_place::job::JobSummary;
use jobc_place::output::ListedJob;
use jobc_place::state::JobState;
use jobc_place::time::Time;
use jobc_sys::error::Result;
use jobc_sys::id::JobId;
use serde_json::Value;

/// A job in the list.
#[derive(Debug)]
pub(crate) struct Row {
    /// What commands take as the job.
    pub(crate) id: String,
    /// The sweep that it belongs to.
    pub(crate) sweep: Option<String>,
    pub(crate) state: JobState,
    pub(crate) submitted: Time,
    /// What a filter is compared with, in lower case.
    words: String,
    /// As `jobc ps --format json` prints it.
    pub(crate) json: String,
}

impl Row {
    pub(crate) fn new(id: String, job: &JobSummary) -> Self {
        let words = [Some(id.as_str()), Some(&job.job), job.description.as_deref(), Some(job.cause())];
        Self {
            sweep: job.sweep.as_ref().map(ToString::to_string),
            state: job.state,
            submitted: job.submitted.unwrap_or_default(),
            words: words.into_iter().flatten().collect::<Vec<_>>().join("\n").to_lowercase(),
            json: serde_json::to_string(&ListedJob::new(&id, job)).unwrap_or_default(),
            id,
        }
    }

    /// A row that `jobc ps --format json` has printed.
    pub(crate) fn parse(json: &Value) -> Option<Self> {
        let text = |name: &str| json[name].as_str().unwrap_or_default();
        let words = ["id", "job", "description", "reason", "message"].map(text).join("\n");
        Some(Self {
            id: json["id"].as_str()?.to_owned(),
            sweep: json["sweep"].as_str().map(str::to_owned),
            state: serde_json::from_value(json["state"].clone()).ok()?,
            submitted: Time::parse(text("submitted")).unwrap_or_default(),
            words: words.to_lowercase(),
            json: json.to_string(),
        })
    }

    /// Whether it contains all words of a filter, in lower case.
    pub(crate) fn has(&self, filter: &str) -> bool {
        filter.split_whitespace().all(|word| self.words.contains(word))
    }
}

/// Which file a record was: a record is replaced, never rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version {
    inode: u64,
    time: (i64, i64),
    bytes: u64,
}

struct Known {
    version: Version,
    row: Arc<Row>,
    /// Whether its supervisor lives; that of a job that has ended need not.
    supervisor: Option<jobc_sys::process::Process>,
}

/// The jobs of this host.
pub(crate) struct LocalJobs {
    place: LocalPlace,
    known: Mutex<BTreeMap<String, Known>>,
}

impl LocalJobs {
    /// Opens the directories of this user.
    ///
    /// # Errors
    /// They are unknown or cannot be read.
    pub(crate) fn open() -> Result<Self> {
        Ok(Self { place: LocalPlace::open(|text| eprintln!("jobc serve: {text}"))?, known: Mutex::default() })
    }

    /// The jobs, the newest first.
    ///
    /// # Errors
    /// The directories cannot be read.
    pub(crate) fn rows(&self) -> Result<Vec<Arc<Row>>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (rows, is_one_lost) = self.read(&mut known)?;
        if !is_one_lost {
            return Ok(rows);
        }
        // Recovered as by every command.
        LocalPlace::open(|text| eprintln!("jobc serve: {text}"))?;
        self.read(&mut known).map(|(rows, _)| rows)
    }

    fn read(&self, known: &mut BTreeMap<String, Known>) -> Result<(Vec<Arc<Row>>, bool)> {
        let directories = self.place.directories();
        let mut before = std::mem::take(known);
        let mut is_one_lost = false;
        for id in directories.list()? {
            let name = id.to_string();
            let record = directories.records.join(&name);
            let directory = Directory { id, state: PathBuf::new(), record };
            let Some(version) = version(&directory) else { continue };
            let entry = match before.remove(&name) {
                Some(entry) if entry.version == version => entry,
                _ => match Record::read(&directory) {
                    Ok(Some(record)) => Known {
                        version,
                        supervisor: record.supervisor.filter(|_| !record.state.is_final()),
                        row: Arc::new(Row::new(name.clone(), &summary(&record))),
                    },
                    // It is being submitted, or damaged; `jobc ps` reports that.
                    Ok(None) | Err(_) => continue,
                },
            };
            is_one_lost |= entry.supervisor.is_some_and(|supervisor| !supervisor.is_alive());
            known.insert(name, entry);
        }
        let mut rows: Vec<_> = known.values().map(|entry| Arc::clone(&entry.row)).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.submitted));
        Ok((rows, is_one_lost))
    }

    /// The directories of a job of this host.
    ///
    /// # Errors
    /// The job is unknown.
    pub(crate) fn find(&self, name: &str) -> Result<Directory> {
        self.place.directories().find(name)
    }

    /// The base directories of all jobs: what they were made of is there.
    ///
    /// # Errors
    /// The directories of the jobs cannot be read.
    pub(crate) fn base_directories(&self) -> Result<BTreeSet<Utf8PathBuf>> {
        let records = self.place.records()?.into_iter();
        Ok(records.filter_map(|(_, record)| Utf8PathBuf::from_path_buf(record.directory).ok()).collect())
    }

    /// Whether a name is the ID of a run.
    pub(crate) fn is_run(name: &str) -> bool {
        name.parse::<JobId>().is_ok()
    }
}

fn version(directory: &Directory) -> Option<Version> {
    let file = std::fs::metadata(directory.record_file()).ok()?;
    Some(Version { inode: file.ino(), time: (file.mtime(), file.mtime_nsec()), bytes: file.len() })
}
