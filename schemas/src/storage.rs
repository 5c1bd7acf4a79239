//! What roles read and write: `data` and `outputs`.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Input data of the roles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// Location: a path (relative to the job file), `nfs://HOST/PATH`, `s3://BUCKET/PATH`, `pvc:NAME`, `https://…` or
    /// `git+https://…`. `job:`, with `writable: true`, is an empty directory that lives as long as the job, for files
    /// that one role hands to another. `instance:SIZE`, with `writable: true`, is an empty directory of each instance;
    /// the size is optional and counts against `disk`. `memory:SIZE` is one in memory (tmpfs), which counts against
    /// `memory`; `job:memory` is one that all roles on a host share, and may be mounted at /dev/shm. Omit it if the
    /// target provides it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("examples" = ["/data/imagenet", "nfs://filer.example.com/imagenet", "pvc:imagenet", "job:", "instance:100GiB", "memory:8GiB", "job:memory"]))]
    pub source: Option<String>,
    /// Mount point in the roles: an absolute path.
    #[schemars(regex(pattern = "^(/|\\$\\{\\{)"), extend("examples" = ["/data"]))]
    pub mount: String,
    /// Whether the roles can write to it.
    #[serde(default)]
    #[schemars(extend("default" = false, "examples" = [true]))]
    pub writable: bool,
    /// Secret with the credentials for the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["bucket"]))]
    pub secret: Option<String>,
    /// Branch, tag or commit of a `git+` source.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["v1.2"]))]
    pub reference: Option<String>,
    /// Whether to unpack an archive from `https://`.
    #[serde(default)]
    #[schemars(extend("default" = false, "examples" = [true]))]
    pub unpack: bool,
    /// Mount options for the target.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("examples" = [{"region": "eu-west-1"}]))]
    pub options: IndexMap<String, String>,
}

/// Output of the roles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// Location: a path (relative to the job file, created if missing), `nfs://HOST/PATH`, `s3://BUCKET/PATH` or
    /// `pvc:NAME`. Omit it if the target provides it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("examples" = ["./checkpoints", "pvc:checkpoints"]))]
    pub source: Option<String>,
    /// Mount point in the roles: an absolute path.
    #[schemars(regex(pattern = "^(/|\\$\\{\\{)"), extend("examples" = ["/output"]))]
    pub mount: String,
    /// Whether the roles can write to it.
    #[serde(default = "yes")]
    #[schemars(extend("default" = true, "examples" = [true]))]
    pub writable: bool,
    /// Secret with the credentials for the location.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["bucket"]))]
    pub secret: Option<String>,
    /// Mount options for the target.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("examples" = [{"region": "eu-west-1"}]))]
    pub options: IndexMap<String, String>,
}

fn yes() -> bool {
    true
}
