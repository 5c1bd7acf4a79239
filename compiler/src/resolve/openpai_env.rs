//! The `PAI_*` variables, for programs written for OpenPAI: `compat: [openpai]`.
//!
//! Names and forms are those of OpenPAI's rest-server and runtime. What only an OpenPAI cluster knows
//! (`PAI_USER_NAME`, `PAI_VIRTUAL_CLUSTER`, `PAI_DEFAULT_FS_URI`, `PAI_WORK_DIR`) is not made up.

use indexmap::IndexMap;
use jobc_schema::plan::{JobPlan, Reference, RolePlan, Text};

/// OpenPAI names every instance's address and port in a variable of its own; above so many instances of a role
/// they are left out, for the environment of a process has an end.
const NAMED_INSTANCES: u32 = 256;

/// The variables for the instances of a role that is told of these roles.
pub(super) fn openpai_env(plan: &JobPlan, role: &RolePlan, seen: &[&RolePlan]) -> IndexMap<String, Text> {
    let mut env = IndexMap::new();
    let mut put = |name: String, text: Text| env.insert(name, text);
    let count = plan.roles.len().to_string();
    let list = seen.iter().map(|role| role.name.as_str()).collect::<Vec<_>>().join(",");
    put("PAI_JOB_NAME".to_owned(), plan.name.as_str().into());
    put("PAI_FRAMEWORK_NAME".to_owned(), plan.name.as_str().into());
    for name in ["PAI_TASK_ROLE_COUNT", "PAI_TASK_ROLES_NUM", "PAI_JOB_TASK_ROLE_COUNT"] {
        put(name.to_owned(), count.as_str().into());
    }
    for name in ["PAI_TASK_ROLE_LIST", "PAI_JOB_TASK_ROLE_LIST"] {
        put(name.to_owned(), list.as_str().into());
    }
    for name in ["PAI_TASKS_NUM", "PAI_JOB_TASK_COUNT"] {
        put(name.to_owned(), plan.totals.instances.to_string().into());
    }
    put("PAI_CURRENT_TASK_ROLE_NAME".to_owned(), role.name.as_str().into());
    for name in ["PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX", "PAI_TASK_INDEX"] {
        put(name.to_owned(), Text::reference(Reference::Index {}));
    }
    for name in ["PAI_CURRENT_CONTAINER_IP", "PAI_CONTAINER_HOST_IP"] {
        put(name.to_owned(), Text::reference(Reference::Host { role: role.name.clone(), index: None }));
    }
    own_ports(role, &mut put);
    for other in seen {
        about(other, &mut put);
    }
    env
}

fn own_ports(role: &RolePlan, put: &mut dyn FnMut(String, Text) -> Option<Text>) {
    let mut all = Text::default();
    for port in &role.ports {
        let number = || Reference::Port { role: role.name.clone(), label: port.label.clone(), index: None };
        let label = port.label.replace('-', "_");
        put(format!("PAI_CONTAINER_HOST_{label}_PORT_LIST"), Text::reference(number()));
        all.push_str(&format!("{label}:"));
        all.push_reference(number());
        all.push_str(";");
    }
    if !role.ports.is_empty() {
        put("PAI_CONTAINER_HOST_PORT_LIST".to_owned(), all);
    }
}

fn about(role: &RolePlan, put: &mut dyn FnMut(String, Text) -> Option<Text>) {
    let name = &role.name;
    // OpenPAI's runtime drops what is no letter or digit from role names, and its labels know no `-`.
    let short: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let resources = &role.resources;
    let mebibytes = |bytes: Option<u64>| bytes.unwrap_or(0).div_ceil(1 << 20);
    put(format!("PAI_TASK_ROLE_TASK_COUNT_{short}"), role.instances.to_string().into());
    // "gpu,cpu,memMB,shmMB", whole numbers rounded up, 0 where unset.
    put(
        format!("PAI_RESOURCE_{short}"),
        format!(
            "{},{},{},{}",
            resources.gpu.as_ref().map_or(0, |gpu| gpu.count),
            resources.cpu_millis.unwrap_or(0).div_ceil(1000),
            mebibytes(resources.memory_bytes),
            mebibytes(resources.shm_bytes),
        )
        .into(),
    );
    let threshold = |number: Option<u32>| number.map_or("-1".to_owned(), |n| n.to_string());
    put(format!("PAI_MIN_FAILED_TASK_COUNT_{short}"), threshold(role.completion.min_failed).into());
    put(format!("PAI_MIN_SUCCEEDED_TASK_COUNT_{short}"), threshold(role.completion.min_succeeded).into());
    if role.instances > NAMED_INSTANCES {
        return;
    }
    for index in 0..role.instances {
        let host = Reference::Host { role: name.clone(), index: Some(index) };
        put(format!("PAI_HOST_IP_{short}_{index}"), Text::reference(host));
        for port in &role.ports {
            let label = port.label.replace('-', "_");
            let number =
                Reference::Port { role: name.clone(), label: port.label.clone(), index: Some(index) };
            put(format!("PAI_PORT_LIST_{short}_{index}_{label}"), Text::reference(number.clone()));
            put(format!("PAI_{short}_{index}_{label}_PORT"), Text::reference(number));
        }
    }
}
