//! Converts OpenPAI's names to ours, and back.

use std::collections::BTreeMap;

use jobc_schema::target::OpenpaiTarget;
use serde_json::{Map, Value};

/// The maximum length of a job name of ours.
pub const MAX_JOB_NAME: usize = 40;
/// The maximum length of a role name of ours.
pub const MAX_ROLE_NAME: usize = 32;
/// The maximum length of a port label of ours.
pub const MAX_LABEL: usize = 15;

/// Converts a name of OpenPAI to ours: lower case, `-` for other marks, a letter first if requested, and at most `max`
/// characters. `None` if no letter or digit is left.
pub fn converted(name: &str, longest: usize, letter_first: bool) -> Option<String> {
    let mut ours = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_ascii_alphanumeric() {
            ours.push(c.to_ascii_lowercase());
        } else if !ours.is_empty() && !ours.ends_with('-') {
            ours.push('-');
        }
    }
    if letter_first && ours.starts_with(|c: char| c.is_ascii_digit()) {
        ours.insert_str(0, "task-");
    }
    ours.truncate(longest);
    let ours = ours.trim_matches('-');
    (!ours.is_empty()).then(|| ours.to_owned())
}

/// A role's name in OpenPAI's objects and run-time variables: lower-case letters and digits.
pub fn short(role: &str) -> String {
    role.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// The names that a job had on OpenPAI.
pub struct Names<'a> {
    job: Option<&'a str>,
    cluster: Option<&'a str>,
    roles: BTreeMap<String, Role<'a>>,
}

/// What is kept of a role, by its name here.
struct Role<'a> {
    /// The name in OpenPAI.
    name: &'a str,
    /// The labels in OpenPAI, by ours.
    labels: BTreeMap<String, &'a str>,
    /// Whether it requested shared memory.
    states_shm: bool,
}

impl<'a> Names<'a> {
    /// The names kept in settings; empty if the job was never an OpenPAI job.
    pub fn new(settings: Option<&'a OpenpaiTarget>) -> Self {
        let protocol = settings.map(|settings| &settings.protocol);
        let roles = protocol.and_then(|fields| fields.get("taskRoles")).and_then(Value::as_object);
        let named = roles.into_iter().flatten().filter_map(|(name, role)| {
            let states_shm = role.pointer("/extraContainerOptions/shmMB").is_some();
            Some((converted(name, MAX_ROLE_NAME, true)?, Role { name, labels: labels(role), states_shm }))
        });
        Self {
            cluster: settings.and_then(|settings| settings.virtual_cluster.as_deref()),
            job: protocol.and_then(|fields| fields.get("name")).and_then(Value::as_str),
            roles: named.collect(),
        }
    }

    /// The job's name in OpenPAI.
    pub fn job(&self, ours: &str) -> String {
        let kept = self.job.filter(|name| converted(name, MAX_JOB_NAME, false).as_deref() == Some(ours));
        kept.unwrap_or(ours).to_owned()
    }

    /// A role's name in OpenPAI: its original one, else letters and digits only, which every part of OpenPAI accepts.
    pub fn role(&self, ours: &str) -> String {
        self.roles.get(ours).map_or_else(|| short(ours), |role| role.name.to_owned())
    }

    /// The virtual cluster of the job.
    pub fn cluster(&self) -> &str {
        self.cluster.unwrap_or("default")
    }

    /// Whether a role explicitly requested the default amount of shared memory.
    pub fn states_shm(&self, ours: &str) -> bool {
        self.roles.get(ours).is_some_and(|role| role.states_shm)
    }

    /// A port's label in OpenPAI: its original one, else `_` for `-`.
    pub fn label(&self, role: &str, ours: &str) -> String {
        let kept = self.roles.get(role).and_then(|role| role.labels.get(ours));
        kept.map_or_else(|| ours.replace('-', "_"), |label| (*label).to_owned())
    }
}

fn labels(role: &Value) -> BTreeMap<String, &str> {
    let ports = role.pointer("/resourcePerInstance/ports").and_then(Value::as_object);
    let labels = ports.into_iter().flat_map(Map::keys);
    labels.filter_map(|label| Some((converted(label, MAX_LABEL, true)?, label.as_str()))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_keep_letters_and_digits() {
        let check = |name: &str, letter: bool, ours: Option<&str>| {
            assert_eq!(converted(name, 12, letter).as_deref(), ours, "{name}");
        };
        check("restnet", true, Some("restnet"));
        check("ResNet_50.v2", true, Some("resnet-50-v2"));
        check("_ps~", true, Some("ps"));
        check("1st", true, Some("task-1st"));
        check("1st", false, Some("1st"));
        check("a-very-long-name", true, Some("a-very-long"));
        check("...", true, None);
        check("训练", true, None);
    }

    #[test]
    fn names_are_converted_back() {
        let settings: OpenpaiTarget = serde_json::from_value(json!({"protocol": {
            "name": "My_Job",
            "taskRoles": {"PS_server": {"resourcePerInstance": {"ports": {"SERVER_PORT": 1}}}, "worker": {}},
        }}))
        .unwrap();
        let names = Names::new(Some(&settings));
        assert_eq!(names.job("my-job"), "My_Job");
        assert_eq!(names.job("my-job-3"), "my-job-3");
        assert_eq!(names.role("ps-server"), "PS_server");
        assert_eq!(names.role("param-server"), "paramserver");
        assert_eq!(names.label("ps-server", "server-port"), "SERVER_PORT");
        assert_eq!(names.label("worker", "server-port"), "server_port");
    }
}
