//! Resources of an instance: `resources` of a role.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::forms;
use crate::gpu::Gpu;
use crate::image::is_false;
use crate::quantity::{Bytes, Cpus};

/// Resources of each instance. A missing value is the default of the target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resources {
    /// Logical CPUs, both request and limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [8, "500m"]))]
    pub cpu: Option<Cpus>,
    /// Memory, both request and limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["32GiB"]))]
    pub memory: Option<Bytes>,
    /// Size of /dev/shm. It counts against `memory`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["8GiB"]))]
    pub shm: Option<Bytes>,
    /// Disk space for files that an instance writes outside its mounts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["100GiB"]))]
    pub disk: Option<Bytes>,
    /// Maximum number of processes and threads of an instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "forms::positive", extend("examples" = [4096]))]
    pub pids: Option<u32>,
    /// Memory in huge pages, by page size.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("propertyNames" = {"enum": ["2MiB", "1GiB", "64KiB", "32MiB", "512MiB", "16GiB"]}, "examples" = [{"2MiB": "4GiB"}]))]
    pub hugepages: IndexMap<String, Bytes>,
    /// Limits of disk traffic by device: its path, its number such as `259:0`, or a path on the host, which stands for the
    /// device of its file system.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("propertyNames" = {"pattern": r"^(/[^\x00-\x1f]*|[0-9]{1,4}:[0-9]{1,7})$"}, "examples" = [{"/dev/nvme0n1": {"read": "500MB", "write": "200MB"}}]))]
    pub io: IndexMap<String, IoLimit>,
    /// RDMA network devices, such as InfiniBand adapters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "forms::count", extend("examples" = [1]))]
    pub rdma: Option<u32>,
    /// Device nodes of the host besides GPUs, by path; a directory stands for the nodes in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(inner(regex(pattern = r"^/dev/[^\x00-\x1f]+$")), extend("uniqueItems" = true, "examples" = [["/dev/fuse", "/dev/infiniband"]]))]
    pub devices: Vec<String>,
    /// Limits of setrlimit(2), by lower-case name: a number or `unlimited`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("propertyNames" = {"enum": ["as", "core", "cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nice", "nofile", "nproc", "rss", "rtprio", "rttime", "sigpending", "stack"]}, "examples" = [{"memlock": "unlimited", "nofile": 65536}]))]
    pub ulimits: IndexMap<String, Ulimit>,
    /// Whether `jobc run` refuses to start where the host cannot enforce these limits, instead of reporting them.
    #[serde(default, skip_serializing_if = "is_false")]
    #[schemars(extend("examples" = [true]))]
    pub enforce: bool,
    /// GPUs: a number, or a block with number and kind. `0` hides all GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [1, {"count": 8, "model": "A100"}]))]
    pub gpu: Option<Gpu>,
    /// Network ports by label. Each is in the environment as `JOBC_PORT_<LABEL>`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("propertyNames" = {"pattern": "^[a-z]([a-z0-9-]{0,13}[a-z0-9])?$"}, "examples" = [{"http": 8888, "rendezvous": "auto"}]))]
    pub ports: IndexMap<String, Port>,
}

/// Limits of the disk traffic of an instance with one device, per second.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IoLimit {
    /// Bytes read per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["500MB"]))]
    pub read: Option<Bytes>,
    /// Bytes written per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["200MB"]))]
    pub write: Option<Bytes>,
    /// Read operations per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "forms::positive", extend("examples" = [5000]))]
    pub read_ops: Option<u32>,
    /// Write operations per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "forms::positive", extend("examples" = [2000]))]
    pub write_ops: Option<u32>,
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

/// The keyword for no limit.
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
            "description": "Soft and hard limit: a number or `unlimited`.",
            "type": ["integer", "string"],
            "minimum": 0,
            "maximum": 9_007_199_254_740_991_u64,
            "pattern": r"^(unlimited|\$\{\{[ -~]*\}\})$",
            "examples": [65536, "unlimited"]
        })
    }
}

/// A port: its number, `auto`, or a block with more settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Port {
    /// The number.
    Number(u16),
    /// `auto`: a free one is chosen.
    Auto(AutoWord),
    /// A block with more settings.
    Rules(PortRules),
}

impl JsonSchema for Port {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Port".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let number = port_or_auto(generator);
        let rules = generator.subschema_for::<PortRules>();
        schemars::json_schema!({"description": "A port: its number, `auto`, or a block with more settings.", "anyOf": [number, rules]})
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

/// Settings of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PortRules {
    /// Port number, or `auto`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "port_or_auto", extend("default" = "auto", "examples" = [8888]))]
    pub port: Option<PortNumber>,
    /// Number of consecutive ports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "forms::positive", extend("default" = 1, "examples" = [2]))]
    pub count: Option<u32>,
    /// Where the port is reachable: only in the job, at the address of the host, or through a service of the target.
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

/// Where a port is reachable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Publish {
    /// Only in the job.
    #[default]
    None,
    /// At the address of the host.
    Host,
    /// Through a service of the target, such as a Kubernetes Service.
    Service,
}
