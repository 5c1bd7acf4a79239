//! The options of a run, in addition to the plan: the content of `submission.json`. It holds no secret.

use std::path::PathBuf;

use indexmap::IndexMap;
use jobc_schema::target::GpuShare;
use serde::{Deserialize, Serialize};

use jobc_gpu::demand::Choices;
use jobc_gpu::inject::InjectionMethod;
use jobc_image::Descriptor;
use jobc_place::time::Time;
use jobc_sys::id::{JobId, TaskId};

/// The options of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[allow(clippy::struct_excessive_bools)] // each is a switch of the command line
pub struct Submission {
    /// The job file, absolute; the plan's directory if it was run from a built plan.
    pub source: PathBuf,
    /// The base directory of relative paths in the job file.
    #[serde(rename = "folder")]
    pub directory: PathBuf,
    /// The arguments of the command that submits it, starting with the program's name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The working directory of that command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<PathBuf>,
    /// Wait for room on the host instead of failing.
    pub queue: bool,
    /// The earliest start, by `after` of the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Time>,
    /// Roles with fewer instances than in the job file, for the record: role → the job file's number.
    pub scaled: IndexMap<String, u32>,
    /// GPUs were taken out of the plan.
    pub without_gpus: bool,
    /// Go on where slices of GPUs are isolated less than requested, and record it.
    pub allow_unenforced: bool,
    /// Refuse to start a task whose limits cannot be enforced, instead of recording them.
    pub enforce_limits: bool,
    /// A scope of this user's systemd is wanted around the supervisor, where limits have no other place
    /// ([`jobc_container::scope`]).
    pub scope: bool,
    /// Roots instead of images: of every role, or by role. A directory, an archive, an unpacked bundle, or `host`.
    pub roots: IndexMap<String, String>,
    /// The images of roles in the store; `None` if no role names an image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<Images>,
    /// Ports of the job network that the host's own network gets.
    pub publish: Vec<Publish>,
    /// The task that gets the client's terminal.
    pub terminal: Option<TaskId>,
    /// The task that gets the client's standard input instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdin: Option<TaskId>,
    /// Keep containers' directories after the end, for debugging.
    pub keep: bool,
    /// Run only while a slot is free, as one of several jobs of a matrix.
    pub turn: Option<QueuePosition>,
    /// The sweep that it is a combination of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sweep: Option<JobId>,
    /// Devices by name, and no others: of every role, or by role, the first ones first.
    pub devices: IndexMap<String, Vec<String>>,
    /// How GPUs are injected into the tasks [default: the target's choice].
    pub gpu_injection: Option<InjectionMethod>,
    /// How slices of GPUs are enforced [default: chosen from job and host].
    pub gpu_share: Option<GpuShare>,
    /// When the command asked NVML, in nanoseconds since boot: its supervisor need not ask again a moment later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus_asked_at: Option<u64>,
    /// The client stays attached: its end is the job's, unless it detaches.
    pub attended: bool,
}

/// The images of a job, which the submitting command has added to the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Images {
    /// The store's directory.
    pub store: PathBuf,
    /// The directories of shared stores below it, which are only read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared: Vec<PathBuf>,
    /// Why each task gets a copy of its layers instead of an overlay; `None` if it gets an overlay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copied: Option<String>,
    /// The manifest of each role's image.
    pub roles: IndexMap<String, Descriptor>,
}

/// A port of a task that the host's own network gets: `--publish HOST:ROLE-INDEX:LABEL`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publish {
    /// The address on the host [default: 127.0.0.1].
    pub address: std::net::IpAddr,
    /// The port on the host; 0: any that is free.
    pub port: u16,
    /// The task.
    pub task: TaskId,
    /// The port's label.
    pub label: String,
}

/// A position in the queue of a matrix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuePosition {
    /// A directory with one lock file a slot, `slot-0` to `slot-N`, and one a job in order, `turn-0` …
    #[serde(rename = "folder")]
    pub directory: PathBuf,
    /// How many may run at once.
    pub slots: u32,
    /// This job's number among them.
    pub number: u32,
}

impl Submission {
    /// Its GPU options.
    pub fn gpu_choices(&self) -> Choices<'_> {
        Choices {
            devices: &self.devices,
            share: self.gpu_share,
            allow_unenforced: self.allow_unenforced,
            injection: self.gpu_injection,
        }
    }
}
