//! The `PAI_*` variables, for programs written for OpenPAI: `compat: [openpai]`.
//!
//! Names and formats are those of OpenPAI's rest-server (`runtime-env.js`) and runtime (openpai-runtime). The server
//! uses a task role's name as written, the runtime its letters and digits in lower case. The submitting user
//! is unknown here, so the user is [`USER`]; a cluster's own file system is an empty text. `PAI_WORK_DIR` is the
//! container's working directory, which only its shell knows: the import sets it.

use indexmap::IndexMap;
use jobc_schema::plan::{JobPlan, PortPlan, Reference, RolePlan, Text};

use super::ports::own_port;
use crate::openpai::{Names, SHM_MIB, short};

/// The owner of a job on targets other than OpenPAI.
const USER: &str = "jobc";

/// OpenPAI has a variable for every instance's address and port; with more instances of a role than this,
/// they are omitted, because the size of an environment is limited.
pub(super) const NAMED_INSTANCES: u32 = 256;

/// The variables for the instances of a role that sees these roles.
pub(super) fn openpai_env(
    plan: &JobPlan,
    role: &RolePlan,
    seen: &[&RolePlan],
    names: &Names<'_>,
) -> IndexMap<String, Text> {
    let mut env = Env { names, variables: IndexMap::new() };
    let job = format!("{USER}~{}", names.job(&plan.name));
    env.texts(&["PAI_JOB_NAME", "PAI_FRAMEWORK_NAME"], &job);
    env.texts(&["PAI_USER_NAME", "PAI_USERNAME"], USER);
    env.texts(&["PAI_DEFAULT_FS_URI"], "");
    env.texts(&["PAI_VIRTUAL_CLUSTER"], names.cluster());
    let count = plan.roles.len().to_string();
    env.texts(&["PAI_TASK_ROLE_COUNT", "PAI_TASK_ROLES_NUM", "PAI_JOB_TASK_ROLE_COUNT"], &count);
    let list = seen.iter().map(|role| names.role(&role.name)).collect::<Vec<_>>().join(",");
    env.texts(&["PAI_TASK_ROLE_LIST", "PAI_JOB_TASK_ROLE_LIST"], &list);
    env.texts(&["PAI_TASKS_NUM", "PAI_JOB_TASK_COUNT"], &plan.totals.instances.to_string());
    env.texts(&["PAI_CURRENT_TASK_ROLE_NAME"], &names.role(&role.name));
    for name in ["PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX", "PAI_TASK_INDEX"] {
        env.put(name, Text::reference(Reference::Index {}));
    }
    for name in ["PAI_CURRENT_CONTAINER_IP", "PAI_CONTAINER_HOST_IP"] {
        env.put(name, Text::reference(Reference::Host { role: role.name.clone(), index: None }));
    }
    let mut instances = Vec::new();
    for role in seen {
        let short = short(&names.role(&role.name));
        instances.extend((0..role.instances.min(NAMED_INSTANCES)).map(|index| format!("{short}:{index}")));
    }
    env.texts(&["PAI_TASK_ROLE_INSTANCES"], &instances.join(","));
    env.own_ports(role);
    for other in seen {
        env.about(other);
    }
    env.variables
}

/// The variables of one role's instances.
struct Env<'a> {
    names: &'a Names<'a>,
    variables: IndexMap<String, Text>,
}

impl Env<'_> {
    fn put(&mut self, name: impl Into<String>, text: Text) {
        self.variables.insert(name.into(), text);
    }

    fn texts(&mut self, names: &[&str], text: &str) {
        for name in names {
            self.put(*name, text.into());
        }
    }

    fn own_ports(&mut self, role: &RolePlan) {
        let mut all = Text::default();
        for port in &role.ports {
            let numbers = own_port(role, &port.label);
            let label = self.names.label(&role.name, &port.label);
            self.put(format!("PAI_CONTAINER_HOST_{label}_PORT_LIST"), numbers.clone());
            all.push_str(&format!("{label}:"));
            all.push_text(&numbers);
            all.push_str(";");
        }
        if !role.ports.is_empty() {
            self.put("PAI_CONTAINER_HOST_PORT_LIST", all);
        }
        for (name, label) in [
            ("PAI_CURRENT_CONTAINER_PORT", "http"),
            ("PAI_CONTAINER_HOST_PORT", "http"),
            ("PAI_CONTAINER_SSH_PORT", "ssh"),
        ] {
            if role.port(label).is_some() {
                let (role, label) = (role.name.clone(), label.to_owned());
                self.put(name, Text::reference(Reference::Port { role, label, index: None }));
            }
        }
    }

    fn about(&mut self, role: &RolePlan) {
        let name = &role.name;
        let written = self.names.role(name);
        let short = short(&written);
        self.put(format!("PAI_TASK_ROLE_TASK_COUNT_{written}"), role.instances.to_string().into());
        self.put(format!("PAI_RESOURCE_{written}"), self.resources(role).into());
        let threshold = |number: Option<u32>| number.map_or("-1".to_owned(), |n| n.to_string());
        let (failed, succeeded) = (role.completion.min_failed, role.completion.min_succeeded);
        self.put(format!("PAI_MIN_FAILED_TASK_COUNT_{written}"), threshold(failed).into());
        self.put(format!("PAI_MIN_SUCCEEDED_TASK_COUNT_{written}"), threshold(succeeded).into());
        if role.port("http").is_some() {
            let list = Reference::Hosts {
                role: name.clone(),
                label: Some("http".to_owned()),
                before: String::new(),
                after: String::new(),
                separator: ",".to_owned(),
            };
            self.put(format!("PAI_TASK_ROLE_{short}_HOST_LIST"), Text::reference(list));
        }
        if role.instances > NAMED_INSTANCES {
            return;
        }
        for index in 0..role.instances {
            let host = Reference::Host { role: name.clone(), index: Some(index) };
            self.put(format!("PAI_HOST_IP_{short}_{index}"), Text::reference(host));
            for port in &role.ports {
                let label = self.names.label(name, &port.label);
                let number = numbers(role, port, index);
                self.put(format!("PAI_PORT_LIST_{short}_{index}_{label}"), number.clone());
                self.put(format!("PAI_{short}_{index}_{label}_PORT"), number);
            }
        }
    }

    /// "gpu,cpu,memMB,shmMB", integers rounded up, 0 if unset.
    ///
    /// 512 MiB of shared memory is the default of OpenPAI, which reports 0 in that case.
    fn resources(&self, role: &RolePlan) -> String {
        let resources = &role.resources;
        let mebibytes = |bytes: Option<u64>| bytes.unwrap_or(0).div_ceil(1 << 20);
        let shm = mebibytes(resources.shm_bytes);
        let unasked = shm == SHM_MIB && !self.names.states_shm(&role.name);
        format!(
            "{},{},{},{}",
            resources.gpu.as_ref().map_or(0, |gpu| gpu.count),
            resources.cpu_millis.unwrap_or(0).div_ceil(1000),
            mebibytes(resources.memory_bytes),
            if unasked { 0 } else { shm },
        )
    }
}

/// The port numbers of an instance: all of them for a range.
fn numbers(role: &RolePlan, port: &PortPlan, index: u32) -> Text {
    let (role, label, index) = (role.name.clone(), port.label.clone(), Some(index));
    Text::reference(if port.count > 1 {
        Reference::Ports { role, label, index, count: port.count }
    } else {
        Reference::Port { role, label, index }
    })
}
