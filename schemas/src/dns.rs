//! How the processes of a job look up names: `dns` of a job.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of the resolver (resolv.conf(5)). What is not written stays as the platform sets it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("minProperties" = 1))]
pub struct Dns {
    /// Addresses of name servers, instead of those of the platform.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 3), extend("examples" = [["10.0.0.2"]]))]
    pub servers: Vec<String>,
    /// Domains in which short names are looked up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("examples" = [["corp.example.com"]]))]
    pub search: Vec<String>,
    /// Options of the resolver.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["ndots:2", "timeout:1"]]))]
    pub options: Vec<String>,
}
