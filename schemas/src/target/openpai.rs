//! `openpai` of a target, and of a job that came from OpenPAI.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::forms;

/// Settings of OpenPAI jobs: of a target, or of a job, beneath the target's own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenpaiTarget {
    /// The virtual cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "default", "examples" = ["research"]))]
    pub virtual_cluster: Option<String>,
    /// The job's priority class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["test"]))]
    pub priority: Option<OpenpaiPriority>,
    /// Storages mounted by name.
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
    /// Further fields of the protocol v2 job, in OpenPAI's own words. They are written beside what jobc makes; commands
    /// of a role stand in place of those made from `run`. `jobc import` keeps here what no other target has a word for.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(extend("examples" = [{"contributor": "Alice", "extras": {"jobStatusChangeNotification": {"failed": true}}}]))]
    pub protocol: IndexMap<String, Value>,
}

impl OpenpaiTarget {
    /// These settings with those of a job beneath them: what is said here wins, field by field.
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

/// A storage mounted by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenpaiStorage {
    /// The storage's name in the cluster.
    #[schemars(extend("examples" = ["confignfs"]))]
    pub name: String,
    /// Where tasks see it; `/mnt/NAME` unless written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["/data"]))]
    pub mount: Option<String>,
    /// The job's data or output that the storage provides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["imagenet"]))]
    pub provides: Option<String>,
    /// Whether tasks may only read it.
    #[serde(default)]
    #[schemars(extend("default" = false, "examples" = [true]))]
    pub read_only: bool,
    /// Whether the storage is shared among the users of its group; the cluster's own choice unless written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [false]))]
    pub share: Option<bool>,
}

/// Settings of one role on OpenPAI.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenpaiRole {
    /// The HiveD SKU; excludes `pinned_cell`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["V100"]))]
    pub sku_type: Option<String>,
    /// How many SKUs an instance takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "forms::positive", extend("examples" = [1]))]
    pub sku_num: Option<u32>,
    /// The HiveD cell the role is pinned to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["cell-1"]))]
    pub pinned_cell: Option<String>,
    /// The HiveD affinity group: roles of one group are placed together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["group-1"]))]
    pub affinity_group: Option<String>,
}
