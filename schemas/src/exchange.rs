//! The messages between jobc and the program of a plug-in: one JSON object in, one out. `docs/guides/plugins.md` is the contract.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::plan::JobPlan;

/// The version of the contract. A plug-in of another version is refused.
pub const CONTRACT: u32 = 1;

/// One object that jobc or a plug-in writes.
#[derive(JsonSchema)]
#[serde(untagged)]
#[schemars(title = "exchange of jobc and a plug-in")]
pub enum PluginExchange {
    /// From jobc, on stdin.
    Request(PluginRequest),
    /// The answer to `describe`.
    Manifest(PluginManifest),
    /// The answer to `lower`.
    Answer(PluginAnswer),
}

/// What jobc writes to the stdin of a plug-in.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "request of jobc to a plug-in")]
pub struct PluginRequest {
    /// Version of the contract: 1.
    pub contract: u32,
    /// What is requested.
    #[serde(flatten)]
    pub operation: PluginOperation,
}

/// What jobc requests.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "operation", rename_all = "lowercase")]
pub enum PluginOperation {
    /// What the plug-in is: the answer is a manifest.
    Describe,
    /// The files of a job: the answer has files and diagnostics.
    Lower {
        /// The plan of the job for one target: an item of `jobs` in the schema of plans.
        #[schemars(with = "Map<String, Value>")]
        plan: Box<JobPlan>,
        /// `plugins.NAME` of the target.
        settings: Map<String, Value>,
        /// Whether what the plug-in cannot express may be left out.
        allow_lossy: bool,
        /// Relative path from the directory of the plug-in's files to the directory of the job file.
        to_job: String,
    },
}

/// What a plug-in is: the answer to `describe`, and the file `backend.yaml` of templates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "manifest of a plug-in")]
pub struct PluginManifest {
    /// Version of the contract: 1.
    pub contract: u32,
    /// One-line description of what it writes.
    pub about: String,
    /// Features that it supports, by their names in `jobc backends --format json`. Others are rejected.
    #[serde(default)]
    pub expresses: Vec<String>,
    /// Features that it supports in part, with the reason. They need `--allow-lossy`.
    #[serde(default)]
    pub lossy: BTreeMap<String, String>,
    /// Features that it does not support, with the reason.
    #[serde(default)]
    pub refuses: BTreeMap<String, String>,
    /// Files that templates write; only in `backend.yaml`.
    #[serde(default)]
    pub templates: Vec<PluginTemplate>,
}

/// A file that a template writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PluginTemplate {
    /// Template next to `backend.yaml`.
    pub template: String,
    /// Path of the written file, itself a template.
    pub path: String,
    /// Whether there is one file for the job, or one for each role.
    #[serde(default)]
    pub each: PluginScope,
    /// Whether the file is executable.
    #[serde(default)]
    pub executable: bool,
}

/// How many files a template writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PluginScope {
    /// One.
    #[default]
    Job,
    /// One for each role, which the template knows as `role`.
    Role,
}

/// The answer to `lower`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "answer of a plug-in")]
pub struct PluginAnswer {
    /// Version of the contract: 1.
    pub contract: u32,
    /// Files, written below `<target>/<plug-in>/`.
    #[serde(default)]
    pub files: Vec<PluginFile>,
    /// What is wrong with the job.
    #[serde(default)]
    pub diagnostics: Vec<PluginDiagnostic>,
}

/// A file with one of `text`, `yaml` and `json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PluginFile {
    /// Relative path, without `.` and `..`.
    pub path: String,
    /// Whether it is executable.
    #[serde(default)]
    pub executable: bool,
    /// Its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// A value that jobc writes as YAML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yaml: Option<Value>,
    /// A value that jobc writes as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<Value>,
    /// Where its parts come from, for `jobc why`.
    #[serde(default)]
    pub origins: Vec<PluginOrigin>,
}

/// Where a part of a file comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PluginOrigin {
    /// JSON Pointer into a file of `yaml` or `json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// Line of a file of `text`, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// JSON Pointer into the job file.
    pub spec: String,
}

/// Something that is wrong with the job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PluginDiagnostic {
    /// Whether it is an error; otherwise a warning.
    #[serde(default = "yes")]
    pub error: bool,
    /// What is wrong, in lower case and without a full stop.
    pub message: String,
    /// JSON Pointer into the job file, such as `/roles/train/resources`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// What to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

fn yes() -> bool {
    true
}
