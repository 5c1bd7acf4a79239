//! The part of a job's record that follows from its plan.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use jobc_schema::job::Network as NetworkChoice;
use jobc_schema::plan::{JobPlan, RoleMatrixPlan, RolePlan};

use crate::directory::Directory;
use crate::lifecycle::Lifecycle;
use crate::rates::Rates;
use crate::record::Record;
use crate::submission::Submission;
use jobc_container::cgroup::UnenforcedLimit;
use jobc_place::job::RoleCombination;
use jobc_place::state::JobState;
use jobc_place::task::{TaskState, TaskStatus};
use jobc_place::time::Time;
use jobc_sys::id::TaskId;
use jobc_sys::process::Process;

/// The record of a job before its first event.
pub(super) fn first_record(
    directory: &Directory,
    submission: &Submission,
    plan: &JobPlan,
    lifecycle: &Lifecycle,
) -> Record {
    let tasks = lifecycle.tasks().iter().map(|task| TaskStatus {
        ports: ports(plan, &task.id, task.role),
        limits: limits(plan, task.role),
        ..TaskStatus::new(task.id.clone(), TaskState::Waiting, 0)
    });
    let mut notes: Vec<String> = submission
        .scaled
        .iter()
        .map(|(role, before)| format!("`{role}` has fewer than the {before} instances of the job file"))
        .collect();
    if submission.without_gpus {
        notes.push("every role runs without its GPUs".to_owned());
    }
    Record {
        version: 1,
        id: directory.id.clone(),
        description: plan.description.clone(),
        source: submission.source.clone(),
        directory: submission.directory.clone(),
        target: plan.target.name.clone(),
        owner: rustix::process::getuid().as_raw(),
        state: JobState::Preparing,
        supervisor: Process::of(std::process::id()),
        submitted: Time::now(),
        attempt: 1,
        network: network_name(plan.network).to_owned(),
        notes,
        sweep: submission.sweep.clone(),
        combinations: combinations(plan),
        rates: Rates::of(plan),
        tasks: tasks.collect(),
        ..Record::default()
    }
}

/// The roles that are combinations of a role's matrix.
fn combinations(plan: &JobPlan) -> IndexMap<String, RoleCombination> {
    let of_matrix = plan.roles.iter().filter_map(|role| Some((role, role.matrix.as_ref()?)));
    let combination = |(role, matrix): (&RolePlan, &RoleMatrixPlan)| {
        (role.name.clone(), RoleCombination { role: matrix.role.clone(), values: matrix.values.clone() })
    };
    of_matrix.map(combination).collect()
}

fn network_name(network: NetworkChoice) -> &'static str {
    match network {
        NetworkChoice::Auto | NetworkChoice::Host => "host",
        NetworkChoice::Job => "job",
        NetworkChoice::None => "none",
    }
}

/// The numbers of a task's ports, by label.
fn ports(plan: &JobPlan, task: &TaskId, role: usize) -> IndexMap<String, u16> {
    let shared = network_name(plan.network) == "host";
    let number = |port: &jobc_schema::plan::PortPlan| {
        if shared {
            u16::try_from(port.shared_number(task.index)).unwrap_or(port.number)
        } else {
            port.number
        }
    };
    plan.roles[role].ports.iter().map(|port| (port.label.clone(), number(port))).collect()
}

/// The limits of a role's tasks, for display.
fn limits(plan: &JobPlan, role: usize) -> BTreeMap<String, u64> {
    let resources = &plan.roles[role].resources;
    let all = [
        ("cpu_millis", resources.cpu_millis),
        ("memory_bytes", resources.memory_bytes),
        ("shm_bytes", resources.shm_bytes),
        ("disk_bytes", resources.disk_bytes),
        ("pids", resources.pids.map(u64::from)),
    ];
    all.into_iter().filter_map(|(name, limit)| Some((name.to_owned(), limit?))).collect()
}

/// The [`TaskStatus::limits`] that nothing enforces, by the fields of config.json that ask for them.
pub(super) fn unenforced(all: &[UnenforcedLimit]) -> Vec<String> {
    let name = |limit: &UnenforcedLimit| {
        Some(match limit.place.strip_prefix("/linux/resources/")? {
            "cpu/quota" | "cpu/period" => "cpu_millis",
            "memory/limit" => "memory_bytes",
            "pids/limit" => "pids",
            throttle if throttle.starts_with("blockIO/throttle") => "io",
            _ => return None,
        })
    };
    let mut names: Vec<String> = all.iter().filter_map(name).map(str::to_owned).collect();
    names.sort();
    names.dedup();
    names
}

/// The directories of the job's outputs, by name.
pub(super) fn outputs(plan: &JobPlan) -> BTreeMap<&str, String> {
    use jobc_schema::plan::{VolumeKind, VolumeSource};
    let path = |source: &VolumeSource| match source {
        VolumeSource::Path { path } => Some(path.clone()),
        _ => None,
    };
    plan.volumes
        .iter()
        .filter(|(_, volume)| volume.kind == VolumeKind::Output)
        .filter_map(|(name, volume)| Some((name.as_str(), path(&volume.source)?)))
        .collect()
}
