//! What the import, the `PAI_*` variables and the backend share about OpenPAI: names, and secrets in commands.
//!
//! OpenPAI's server reduces a task role's name to lower-case letters and digits, also in the names of variables that
//! contain it; ours have `-` for other marks. A job imported from OpenPAI keeps its original names as the
//! keys of `openpai.protocol.taskRoles`, which [`Names`] reads.

mod names;
mod script;
mod secrets;

use indexmap::IndexMap;
use jobc_schema::plan::RolePlan;
use serde_json::Value;

pub use names::{MAX_JOB_NAME, MAX_LABEL, MAX_ROLE_NAME, Names, converted, short};
pub use script::{ROLE_MARK, Section, Sections, Value as SectionValue, read_sections};
pub use secrets::{Variables, variable_of, with_variables};

/// The fields of a job in the order they are read and written.
pub(crate) const FIELDS: [&str; 14] = [
    "protocolVersion",
    "name",
    "type",
    "version",
    "contributor",
    "description",
    "prerequisites",
    "parameters",
    "secrets",
    "jobRetryCount",
    "taskRoles",
    "deployments",
    "defaults",
    "extras",
];

/// The fields of a task role in the order they are read and written.
pub(crate) const ROLE_FIELDS: [&str; 12] = [
    "protocolVersion",
    "instances",
    "completion",
    "taskRetryCount",
    "prerequisites",
    "dockerImage",
    "data",
    "output",
    "script",
    "extraContainerOptions",
    "resourcePerInstance",
    "commands",
];

/// The key of `extras` that contains runtime plugins.
pub const PLUGINS: &str = "com.microsoft.pai.runtimeplugin";

/// The prefix of the name of a prerequisite that is a runtime plugin.
pub const PLUGIN_PREFIX: &str = "com.microsoft.pai.runtimeplugin.";

/// The runtime plugins of OpenPAI (openpai-runtime, `src/plugins`).
pub const KNOWN_PLUGINS: [&str; 5] = ["ssh", "cmd", "git", "teamwise_storage", "tensorboard"];

/// The default size of `/dev/shm` in OpenPAI, in MiB (rest-server, `k8s.js`).
pub const SHM_MIB: u64 = 512;

/// The number of ports that OpenPAI gives every task besides those that the job requests (rest-server, `k8s.js`).
pub const OWN_PORTS: [&str; 2] = ["ssh", "http"];

/// The ssh client's configuration for logins between the tasks of a job from OpenPAI.
pub const SSH_CONFIG: &str = "/etc/jobc/openpai/ssh_config";

/// The names of the tasks that must accept ssh before the command runs.
pub const SSH_BARRIER: &str = "/etc/jobc/openpai/barrier";

/// Whether a parameter of a plugin is enabled: `true`, or the word in any case, as the runtime reads it.
pub fn is_on(value: &Value) -> bool {
    value.as_bool().unwrap_or_else(|| value.as_str().is_some_and(|text| text.eq_ignore_ascii_case("true")))
}

/// Whether a role's tasks can use ssh between them, as with OpenPAI's plugin `ssh`.
pub fn has_ssh(role: &RolePlan) -> bool {
    role.provided_files.iter().any(|file| file.path == SSH_CONFIG)
}

/// Removes the commands, and what runs around them, from the kept fields: they are in `run` and `setup`.
pub fn without_commands(protocol: &mut IndexMap<String, Value>) {
    if let Some(Value::Object(roles)) = protocol.get_mut("taskRoles") {
        for role in roles.values_mut().filter_map(Value::as_object_mut) {
            role.shift_remove("protocolVersion");
            role.shift_remove("commands");
            role.shift_remove("prerequisites");
        }
        // A name that can be derived need not be kept.
        roles
            .retain(|name, role| short(name) != *name || role.as_object().is_some_and(|map| !map.is_empty()));
    }
    protocol.shift_remove("deployments");
    if let Some(Value::Object(defaults)) = protocol.get_mut("defaults") {
        defaults.shift_remove("deployment");
    }
    if let Some(Value::Object(extras)) = protocol.get_mut("extras") {
        extras.shift_remove(PLUGINS);
    }
    if let Some(Value::Array(items)) = protocol.get_mut("prerequisites") {
        let runs = |item: &Value| {
            let name = item.get("plugin").and_then(Value::as_str);
            matches!(name.and_then(|name| name.strip_prefix(PLUGIN_PREFIX)), Some("cmd" | "git"))
        };
        items.retain(|item| !runs(item));
    }
    protocol.retain(|_, value| !matches!(value, Value::Object(map) if map.is_empty()));
}
