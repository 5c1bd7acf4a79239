//! What roles read and write: `data` and `outputs`.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something the roles read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// Where it is: a path (relative to the job file), `nfs://HOST/PATH`, `s3://BUCKET/PATH`, `pvc:NAME`, `https://…` or `git+https://…`; absent where the target provides it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("examples" = ["/data/imagenet", "nfs://filer.example.com/imagenet", "pvc:imagenet"]))]
    pub source: Option<String>,
    /// Where the roles see it: an absolute path.
    #[schemars(regex(pattern = "^(/|\\$\\{\\{)"), extend("examples" = ["/data"]))]
    pub mount: String,
    /// Whether the roles may write to it.
    #[serde(default)]
    #[schemars(extend("default" = false, "examples" = [true]))]
    pub writable: bool,
    /// The secret that opens the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["bucket"]))]
    pub secret: Option<String>,
    /// The branch, tag or commit of a `git+` source.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["v1.2"]))]
    pub reference: Option<String>,
    /// Whether an archive from `https://` is unpacked.
    #[serde(default)]
    #[schemars(extend("default" = false, "examples" = [true]))]
    pub unpack: bool,
    /// Mount options that only the target understands.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("examples" = [{"region": "eu-west-1"}]))]
    pub options: IndexMap<String, String>,
}

/// Something the roles write.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// Where it goes: a path (relative to the job file, created if missing), `nfs://HOST/PATH`, `s3://BUCKET/PATH` or `pvc:NAME`; absent where the target provides it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("examples" = ["./checkpoints", "pvc:checkpoints"]))]
    pub source: Option<String>,
    /// Where the roles see it: an absolute path.
    #[schemars(regex(pattern = "^(/|\\$\\{\\{)"), extend("examples" = ["/output"]))]
    pub mount: String,
    /// Whether the roles may write to it.
    #[serde(default = "yes")]
    #[schemars(extend("default" = true, "examples" = [true]))]
    pub writable: bool,
    /// The secret that opens the place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["bucket"]))]
    pub secret: Option<String>,
    /// Mount options that only the target understands.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("examples" = [{"region": "eu-west-1"}]))]
    pub options: IndexMap<String, String>,
}

fn yes() -> bool {
    true
}
