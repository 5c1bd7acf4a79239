//! The record of a job: the content of `job.json`, which its supervisor replaces after each change.

mod damaged;

use std::path::PathBuf;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::directory::{Directory, replace};
use crate::rates::Rates;
use jobc_gpu::lease::GpuLease;
use jobc_place::job::{End, RoleCombination};
use jobc_place::metric::{FirstValue, MetricValue};
use jobc_place::state::JobState;
use jobc_place::task::TaskStatus;
use jobc_place::time::Time;
use jobc_schema::{Bytes, Cpus, plural};
use jobc_sys::error::{Error, Kind, Result, file_error};
use jobc_sys::id::{JobId, TaskId};
use jobc_sys::process::Process;
use jobc_sys::write_atomic::Durability;

/// The record of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The format; 1.
    pub version: u32,
    /// The run and its job.
    pub id: JobId,
    /// One line of description, from the job file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The job file, absolute; the plan's directory if it was run from a built plan.
    pub source: PathBuf,
    /// The base directory of relative paths in the job file.
    #[serde(default, skip_serializing_if = "empty")]
    pub directory: PathBuf,
    /// The target whose settings hold.
    pub target: String,
    /// The user who runs it, by uid.
    pub owner: u32,
    /// Where it is in its life.
    pub state: JobState,
    /// Its supervisor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supervisor: Option<Process>,
    /// The scope of this user's systemd that it runs in, by its unit's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// When it was submitted.
    pub submitted: Time,
    /// When its first task was let go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Time>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Time>,
    /// Which attempt of the whole job this is, from 1.
    pub attempt: u32,
    /// `host`, `job` or `none`.
    pub network: String,
    /// Its claim on the host.
    pub claim: Claim,
    /// Notes for the user: limits that nothing enforces, what an unprivileged user has otherwise, roles scaled down.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The sweep that it is a combination of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<JobId>,
    /// The roles that are combinations of a role's matrix, by role.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub combinations: IndexMap<String, RoleCombination>,
    /// The last values of its metrics, by role and metric, in the order in which they came first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<MetricValue>,
    /// What its tasks use in a time and cost, if it has a budget or its target prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rates: Option<Rates>,
    /// Its tasks, in the order of the plan.
    pub tasks: Vec<TaskStatus>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
    /// Whether the file could not be read and this record replaces it.
    #[serde(skip)]
    pub is_damaged: bool,
}

fn empty(path: &std::path::Path) -> bool {
    path.as_os_str().is_empty()
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde calls it so
fn is_zero(priority: &i8) -> bool {
    *priority == 0
}

/// A job's peak use of the host's resources, which admission counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Thousandths of a logical CPU.
    pub cpu_millis: u64,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Whole GPUs.
    pub gpus: u64,
    /// Bytes on disk, outside of volumes.
    pub disk_bytes: u64,
    /// Ports on the host's own network.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<u16>,
    /// The time limit of the job in seconds, by which it gives all of this back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// Which jobs it comes before in the queue; higher is sooner.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub priority: i8,
    /// Its GPUs, once it is admitted.
    #[serde(default, skip_serializing_if = "GpuLease::is_empty")]
    pub leased: GpuLease,
}

impl Claim {
    /// The resources of the host that are counted, as text.
    pub fn describe(&self) -> String {
        let mut parts = Vec::new();
        if self.cpu_millis > 0 {
            parts.push(Cpus { millis: self.cpu_millis }.amount());
        }
        if self.memory_bytes > 0 {
            parts.push(format!("{} of memory", Bytes(self.memory_bytes).amount()));
        }
        if self.gpus > 0 {
            parts.push(plural(self.gpus, "GPU"));
        }
        let in_turns = self.leased.cards_in_turns().len();
        if in_turns > 0 {
            parts.push(format!("{} in turns", plural(in_turns as u64, "GPU")));
        }
        let slices = self.leased.slots.iter().filter(|slot| slot.slice.is_some()).count() - in_turns;
        if slices > 0 {
            parts.push(if slices == 1 {
                "a slice of a GPU".to_owned()
            } else {
                format!("{slices} slices of GPUs")
            });
        }
        if self.disk_bytes > 0 {
            parts.push(format!("{} of disk", Bytes(self.disk_bytes)));
        }
        if !self.ports.is_empty() {
            let numbers: Vec<String> = self.ports.iter().map(u16::to_string).collect();
            parts.push(format!("ports {}", numbers.join(", ")));
        }
        if parts.is_empty() { "nothing that is counted".to_owned() } else { parts.join(", ") }
    }
}

impl Record {
    /// Reads a job's record; `None` if the command that created the directory was killed before it wrote one.
    ///
    /// For a truncated file, returns what is known without it ([`Record::is_damaged`]).
    pub fn read(directory: &Directory) -> Result<Option<Self>> {
        let path = directory.record_file();
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(file_error("read", &path, &error)),
        };
        match serde_json::from_slice(&text) {
            Ok(record) => Ok(Some(record)),
            Err(error) if damaged::is_damaged(&error) => Ok(Some(damaged::stand_in(directory))),
            Err(error) => {
                Err(Error::new(Kind::State, format!("`{}` is not a job's record: {error}", path.display()))
                    .help(format!("`jobc rm --force {}` removes what is left of the job", directory.id)))
            }
        }
    }

    /// The record of a job.
    ///
    /// # Errors
    ///
    /// It cannot be read, or the command that submits the job has not written it yet.
    pub fn require(directory: &Directory) -> Result<Self> {
        Self::read(directory)?.ok_or_else(|| {
            let error = Error::new(Kind::State, format!("job `{}` has no record yet", directory.id));
            error.help("it is being submitted, or the command that submitted it was killed")
        })
    }

    /// The state of a task as shown: a task of a paused job is paused, whatever it did before.
    pub fn state_of(&self, task: &TaskStatus) -> &'static str {
        jobc_place::job::state_of(self.state, task)
    }

    /// Replaces a job's record in one step.
    pub fn write(&self, directory: &Directory, durability: Durability) -> Result<()> {
        let text = serde_json::to_vec(self).map_err(|error| Error::new(Kind::State, error.to_string()))?;
        replace(&directory.record_file(), &text, durability)
    }

    /// Keeps the last value of a metric of a role, and of progress also the first of the attempt.
    pub fn set_metric(&mut self, mut value: MetricValue) {
        let same = |known: &MetricValue| known.name == value.name && known.task.role == value.task.role;
        let known = self.metrics.iter_mut().find(|known| same(known));
        if value.name == jobc_schema::progress::DONE {
            let own = |known: &&mut MetricValue| known.task == value.task && known.attempt == value.attempt;
            let (now, time) = (value.value, value.time);
            let first = known.as_ref().filter(|known| own(known)).and_then(|known| known.first);
            value.first = first.or(Some(FirstValue { value: now, time }));
        }
        match known {
            Some(known) => *known = value,
            None => self.metrics.push(value),
        }
    }

    /// The last value of a metric, of any role.
    pub fn metric(&self, name: &str) -> Option<&MetricValue> {
        self.metrics.iter().filter(|metric| metric.name == name).max_by_key(|metric| metric.time)
    }

    /// The record of a task.
    pub fn task(&self, task: &TaskId) -> Option<&TaskStatus> {
        self.tasks.iter().find(|known| known.task == *task)
    }
}
