//! `openpai` of a target, and of a job that came from OpenPAI.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::forms;

/// Settings of OpenPAI jobs, in a target or in a job. Settings of the target override those of the job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenpaiTarget {
    /// Virtual cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "default", "examples" = ["research"]))]
    pub virtual_cluster: Option<String>,
    /// Priority class of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["test"]))]
    pub priority: Option<OpenpaiPriority>,
    /// Storages to mount, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [[{"name": "confignfs", "mount": "/data"}]]))]
    pub storages: Vec<OpenpaiStorage>,
    /// Runtime plugins, as OpenPAI writes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<IndexMap<String, Value>>", extend("examples" = [[{"plugin": "teamwise_storage", "parameters": {"storageConfigNames": ["confignfs"]}}]]))]
    pub plugins: Vec<Value>,
    /// Settings of some roles.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("examples" = [{"train": {"sku_type": "V100"}}]))]
    pub roles: IndexMap<String, OpenpaiRole>,
    /// More fields of the protocol v2 job, as OpenPAI writes them. They are added to the generated fields; commands of
    /// a role replace those generated from `run`. `jobc import` keeps fields here that no other target supports.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("examples" = [{"contributor": "Alice", "extras": {"jobStatusChangeNotification": {"failed": true}}}]))]
    pub protocol: IndexMap<String, Value>,
}

impl OpenpaiTarget {
    /// These settings merged with those of a job: these override, field by field.
    #[must_use]
    pub fn over(&self, job: &Self) -> Self {
        let Self { virtual_cluster, priority, storages, plugins, roles, protocol } = self.clone();
        let mut all_roles = job.roles.clone();
        all_roles.extend(roles);
        let mut all_fields = job.protocol.clone();
        all_fields.extend(protocol);
        Self {
            virtual_cluster: virtual_cluster.or_else(|| job.virtual_cluster.clone()),
            priority: priority.or(job.priority),
            storages: if storages.is_empty() { job.storages.clone() } else { storages },
            plugins: if plugins.is_empty() { job.plugins.clone() } else { plugins },
            roles: all_roles,
            protocol: all_fields,
        }
    }
}

/// An OpenPAI priority class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OpenpaiPriority {
    /// Guaranteed.
    Prod,
    /// For tests.
    Test,
    /// Opportunistic: may be preempted.
    Oppo,
}

/// A storage to mount.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenpaiStorage {
    /// Name of the storage in the cluster.
    #[schemars(extend("examples" = ["confignfs"]))]
    pub name: String,
    /// Mount point in the tasks. Default: `/mnt/NAME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["/data"]))]
    pub mount: Option<String>,
    /// Entry of `data` or `outputs` that the storage provides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["imagenet"]))]
    pub provides: Option<String>,
    /// Whether the mount is read-only.
    #[serde(default)]
    #[schemars(extend("default" = false, "examples" = [true]))]
    pub read_only: bool,
    /// Whether the storage is shared among the users of its group. Default: the setting of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [false]))]
    pub share: Option<bool>,
}

/// Settings of one role on OpenPAI.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenpaiRole {
    /// HiveD SKU. Cannot be combined with `pinned_cell`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["V100"]))]
    pub sku_type: Option<String>,
    /// Number of SKUs of an instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "forms::positive", extend("examples" = [1]))]
    pub sku_num: Option<u32>,
    /// HiveD cell that the role is pinned to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["cell-1"]))]
    pub pinned_cell: Option<String>,
    /// HiveD affinity group. Roles of one group are placed together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["group-1"]))]
    pub affinity_group: Option<String>,
}
