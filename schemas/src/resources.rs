//! What an instance gets of a machine: `resources` of a role.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::forms;
use crate::gpu::Gpu;
use crate::quantity::{Bytes, Cpus};

/// What each instance gets of the machine; what is absent is the target's default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resources {
    /// Logical CPUs: what is asked for is also the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [8, "500m"]))]
    pub cpu: Option<Cpus>,
    /// Memory: what is asked for is also the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["32GiB"]))]
    pub memory: Option<Bytes>,
    /// The size of /dev/shm; it counts inside `memory`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["8GiB"]))]
    pub shm: Option<Bytes>,
    /// Room for the files an instance writes outside its mounts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["100GiB"]))]
    pub disk: Option<Bytes>,
    /// The most processes and threads an instance may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "forms::positive", extend("examples" = [4096]))]
    pub pids: Option<u32>,
    /// Memory in huge pages, by page size.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("propertyNames" = {"enum": ["2MiB", "1GiB", "64KiB", "32MiB", "512MiB", "16GiB"]}, "examples" = [{"2MiB": "4GiB"}]))]
    pub hugepages: IndexMap<String, Bytes>,
    /// RDMA network devices, such as InfiniBand adapters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "forms::count", extend("examples" = [1]))]
    pub rdma: Option<u32>,
    /// Limits of setrlimit(2), by their names in lower case: a number, or `unlimited`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("propertyNames" = {"enum": ["as", "core", "cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nice", "nofile", "nproc", "rss", "rtprio", "rttime", "sigpending", "stack"]}, "examples" = [{"memlock": "unlimited", "nofile": 65536}]))]
    pub ulimits: IndexMap<String, Ulimit>,
    /// GPUs: how many, or how many of which kind; `0` hides all GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [1, {"count": 8, "model": "A100"}]))]
    pub gpu: Option<Gpu>,
    /// Network ports by label; each is `JOBC_PORT_<LABEL>` in the environment.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("propertyNames" = {"pattern": "^[a-z]([a-z0-9-]{0,13}[a-z0-9])?$"}, "examples" = [{"http": 8888, "rendezvous": "auto"}]))]
    pub ports: IndexMap<String, Port>,
}

/// One limit of setrlimit(2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Ulimit {
    /// The soft and the hard limit.
    Number(u64),
    /// `unlimited`.
    Word(UlimitWord),
}

/// The word for no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UlimitWord {
    /// No limit.
    Unlimited,
}

impl JsonSchema for Ulimit {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Ulimit".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "The soft and the hard limit, or `unlimited`.",
            "type": ["integer", "string"],
            "minimum": 0,
            "maximum": 9_007_199_254_740_991_u64,
            "pattern": r"^(unlimited|\$\{\{[ -~]*\}\})$",
            "examples": [65536, "unlimited"]
        })
    }
}

/// A port: its number, `auto`, or more about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Port {
    /// The number.
    Number(u16),
    /// `auto`: a free one is chosen.
    Auto(AutoWord),
    /// More about it.
    Rules(PortRules),
}

impl JsonSchema for Port {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Port".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let number = port_or_auto(generator);
        let rules = generator.subschema_for::<PortRules>();
        schemars::json_schema!({"description": "A port: its number, `auto`, or more about it.", "anyOf": [number, rules]})
    }
}

/// The word `auto`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AutoWord {
    /// A free one is chosen.
    #[default]
    Auto,
}

/// More about a port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PortRules {
    /// The number, or `auto`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "port_or_auto", extend("default" = "auto", "examples" = [8888]))]
    pub port: Option<PortNumber>,
    /// How many consecutive ports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "forms::positive", extend("default" = 1, "examples" = [2]))]
    pub count: Option<u32>,
    /// Who can reach it: nobody outside the job, the host's address, or a service of the target.
    #[serde(default)]
    #[schemars(extend("default" = "none", "examples" = ["service"]))]
    pub publish: Publish,
}

/// A port's number, or `auto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PortNumber {
    /// The number.
    Number(u16),
    /// A free one is chosen.
    Auto(AutoWord),
}

fn port_or_auto(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": ["integer", "string"], "minimum": 1, "maximum": 65535, "pattern": r"^(auto|\$\{\{[ -~]*\}\})$"})
}

/// Who can reach a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Publish {
    /// Nobody outside the job.
    #[default]
    None,
    /// Whoever reaches the host.
    Host,
    /// A service of the target, such as a Kubernetes Service.
    Service,
}
