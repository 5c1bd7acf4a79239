//! The answers of a rest-server, as far as they are used (pai, `src/rest-server/docs/swagger.yaml`).
//!
//! Older releases leave fields out, and any field can be null.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A field that is null has its default.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// A job in the list of `GET /api/v2/jobs`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Summary {
    pub(crate) name: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) username: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) state: String,
    /// None if the release has no tags.
    pub(crate) tags: Option<Vec<String>>,
    pub(crate) submission_time: Option<i64>,
    pub(crate) created_time: Option<i64>,
    pub(crate) launched_time: Option<i64>,
    pub(crate) completed_time: Option<i64>,
    pub(crate) app_exit_code: Option<i64>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) total_task_number: u64,
}

/// A job with its tasks, of `GET /api/v2/jobs/USER~NAME`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Detail {
    pub(crate) name: String,
    pub(crate) tags: Option<Vec<String>>,
    pub(crate) job_status: JobStatus,
    #[serde(deserialize_with = "or_default")]
    pub(crate) task_roles: BTreeMap<String, TaskRole>,
}

/// The state of a job, and of one attempt of it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct JobStatus {
    #[serde(deserialize_with = "or_default")]
    pub(crate) username: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) state: String,
    pub(crate) retry_delay_time: Option<f64>,
    pub(crate) submission_time: Option<i64>,
    pub(crate) created_time: Option<i64>,
    pub(crate) launched_time: Option<i64>,
    pub(crate) completed_time: Option<i64>,
    /// The number of the attempt, from 0.
    pub(crate) attempt_id: Option<u32>,
    pub(crate) app_launched_time: Option<i64>,
    pub(crate) app_exit_code: Option<i64>,
    pub(crate) app_exit_spec: Option<ExitSpec>,
    pub(crate) app_exit_diagnostics: Option<String>,
    pub(crate) app_exit_messages: Option<ExitMessages>,
    pub(crate) app_exit_trigger_message: Option<String>,
    pub(crate) app_exit_trigger_task_role_name: Option<String>,
    pub(crate) app_exit_trigger_task_index: Option<u64>,
    pub(crate) virtual_cluster: Option<String>,
}

/// What an exit code means (pai, `src/k8s-job-exit-spec`).
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct ExitSpec {
    #[serde(deserialize_with = "or_default")]
    pub(crate) phrase: String,
    pub(crate) reason: Value,
    pub(crate) solution: Value,
}

/// What the parts of a task said about its end.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct ExitMessages {
    /// What the runtime in the container wrote (openpai-runtime, `RuntimeExitInfo`).
    pub(crate) runtime: Value,
}

/// The tasks of a role.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct TaskRole {
    #[serde(deserialize_with = "or_default")]
    pub(crate) task_statuses: Vec<TaskStatus>,
}

/// A task, with its newest attempt.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct TaskStatus {
    pub(crate) task_index: u64,
    #[serde(deserialize_with = "or_default")]
    pub(crate) task_state: String,
    /// The number of the attempt, from 0.
    pub(crate) attempt_id: Option<u32>,
    pub(crate) attempt_state: Option<String>,
    pub(crate) container_id: Option<String>,
    pub(crate) container_ip: Option<String>,
    pub(crate) container_node_name: Option<String>,
    pub(crate) container_log: Option<String>,
    pub(crate) container_exit_code: Option<i64>,
    pub(crate) container_exit_spec: Option<ExitSpec>,
    pub(crate) container_exit_diagnostics: Option<String>,
}

/// All attempts of a task in one attempt of its job, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct TaskHistory {
    pub(crate) attempts: Vec<TaskStatus>,
}

/// The files with a task's output.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct LogList {
    pub(crate) locations: Vec<LogLocation>,
}

/// A file with output: `all`, `stdout`, `stderr`, and with `.1` what was in it before.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(crate) struct LogLocation {
    pub(crate) name: String,
    pub(crate) uri: String,
}

/// The events of a job, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct EventList {
    pub(crate) data: Vec<RawEvent>,
}

/// An event of a job or its tasks.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct RawEvent {
    #[serde(deserialize_with = "or_default")]
    pub(crate) uid: String,
    pub(crate) taskrole_name: Option<String>,
    pub(crate) task_index: Option<u64>,
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub(crate) kind: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) reason: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) message: String,
    pub(crate) first_timestamp: Option<String>,
    pub(crate) last_timestamp: Option<String>,
    pub(crate) count: Option<u64>,
}

/// A virtual cluster.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct VirtualCluster {
    #[serde(deserialize_with = "or_default")]
    pub(crate) resources_total: Resources,
}

/// Amounts: CPUs, MB of memory, GPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Resources {
    #[serde(deserialize_with = "or_default")]
    pub(crate) cpu: f64,
    #[serde(deserialize_with = "or_default")]
    pub(crate) memory: f64,
    #[serde(deserialize_with = "or_default")]
    pub(crate) gpu: f64,
}

/// A user.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct User {
    #[serde(deserialize_with = "or_default")]
    pub(crate) admin: bool,
    pub(crate) virtual_cluster: Option<Vec<String>>,
}

/// The storages that a user may mount.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct StorageList {
    pub(crate) storages: Vec<StorageName>,
}

/// A storage.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(crate) struct StorageName {
    pub(crate) name: String,
}

/// What a server says about itself.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Info {
    #[serde(deserialize_with = "or_default")]
    pub(crate) version: String,
}
