//! The step of a role: the `srun` that starts its instances.

use std::fmt::Write as _;

use jobc_schema::plan::{Launch, RolePlan, VolumeSource};
use jobc_schema::shell::quote;
use jobc_schema::target::SlurmContainer;

use crate::backend::command;

use super::group::Group;
use super::parts::Parts;
use super::shell::{Filling, variable};
use super::volumes::{self, Places};
use super::{header, run};

/// Whether Slurm itself starts the containers, one bundle for each instance.
pub(super) fn is_oci(parts: &Parts<'_>) -> bool {
    parts.container() == SlurmContainer::Oci
}

/// The function that runs a role's step and returns its exit code.
pub(super) fn function(parts: &Parts<'_>, group: &Group<'_>, role: &RolePlan) -> String {
    let mut text = format!("jobc_step_{}() {{\n", variable(&role.name));
    if is_oci(parts) {
        each_instance(parts, group, role, &mut text);
    } else {
        whole_role(parts, group, role, &mut text);
    }
    text.push_str("}\n");
    text
}

/// One `srun` for all instances.
fn whole_role(parts: &Parts<'_>, group: &Group<'_>, role: &RolePlan, text: &mut String) {
    let hosts = format!("jobc_hosts_{}", variable(&role.name));
    // Only the first instance runs something; it reaches the others through Slurm.
    let (tasks, nodes) = match role.launch {
        Launch::First => (1, format!("\"${{{hosts}[0]}}\"")),
        Launch::All | Launch::None => (role.instances, format!("\"$(IFS=,; echo \"${{{hosts}[*]}}\")\"")),
    };
    let mut options = common(parts, group, role, tasks, &nodes);
    options.push("--kill-on-bad-exit=1".to_owned());
    options.push("--wait=0".to_owned());
    options.push(format!("--output=\"$jobc_run/logs/{}-%t.log\"", role.name));
    options.push("--open-mode=append".to_owned());
    if parts.container() == SlurmContainer::Pyxis {
        options.extend(pyxis(parts, role, &Places::SUPERVISED));
    }
    // Replaces the shell, so that it can be stopped on its own.
    let _ = write!(text, "  exec srun");
    for option in options {
        let _ = write!(text, " {option}");
    }
    let _ = writeln!(
        text,
        " \\\n    bash \"$jobc_directory/roles/{}.sh\" \"$jobc_run/state/$jobc_group.addresses\"",
        role.name
    );
}

/// One `srun --container` for each instance, because each has a bundle of its own.
fn each_instance(parts: &Parts<'_>, group: &Group<'_>, role: &RolePlan, text: &mut String) {
    let hosts = format!("jobc_hosts_{}", variable(&role.name));
    let mut options = common(parts, group, role, 1, &format!("\"${{{hosts}[jobc_index]}}\""));
    options.push(format!("--output=\"$jobc_run/logs/{}-$jobc_index.log\"", role.name));
    options.push("--open-mode=append".to_owned());
    let filling = Filling { job: parts.job, ports: &parts.ports, role };
    let argv = command::argv(parts.job, role).unwrap_or_default();
    let _ = write!(
        text,
        "  local jobc_index pids=() code=0\n  for ((jobc_index = 0; jobc_index < {}; jobc_index++)); do\n    jobc_fill {} || return 125\n    srun {} --container=\"$jobc_bundle\" {} &\n    pids+=($!)\n  done\n",
        role.instances,
        role.name,
        options.join(" "),
        filling.words(&argv)
    );
    text.push_str("  for jobc_index in \"${!pids[@]}\"; do\n    wait \"${pids[jobc_index]}\" || jobc_lost \"$?\"\n  done\n  return \"$code\"\n");
}

/// The options of every `srun`.
pub(super) fn common(
    parts: &Parts<'_>,
    group: &Group<'_>,
    role: &RolePlan,
    tasks: u32,
    nodes: &str,
) -> Vec<String> {
    let mut options = vec![];
    if group.is_heterogeneous() {
        options.push(format!("--het-group={}", group.nodes_of(role).0));
    }
    options.push(format!("--job-name={}", role.name));
    options.push(format!("--nodes={tasks} --ntasks={tasks} --ntasks-per-node=1 --nodelist={nodes}"));
    options.extend(header::step_resources(parts.job, parts.settings, role));
    if run::is_mpi_step(parts.job, role) {
        options.push("--mpi=pmix".to_owned());
    }
    options
}

/// The options of pyxis.
pub(super) fn pyxis(parts: &Parts<'_>, role: &RolePlan, places: &Places) -> Vec<String> {
    let mut options = vec![format!("--container-image={}", run::enroot_image(parts, role))];
    // The secrets of `submit.sh` are next to the directory of the job.
    let secrets = run::uses_secrets(role).then_some("\"$jobc_secrets:$jobc_secrets:ro\"");
    let own = ["\"$jobc_directory:$jobc_directory\"", "\"$jobc_run:$jobc_run\""].into_iter().chain(secrets);
    let own = own.filter(|_| places.is_supervised());
    let memory = |path: &str, bytes: u64| format!("tmpfs:{path}:size={bytes}+mode=1777+nosuid+nodev");
    let shm = role.resources.shm_bytes.map(|bytes| memory("/dev/shm", bytes));
    let others = role.mounts.iter().filter_map(|mount| match parts.job.volumes.get(&mount.volume)?.source {
        VolumeSource::Memory { size_bytes } => Some(memory(&quote(&mount.path), size_bytes)),
        _ => None,
    });
    let mounts = own.map(str::to_owned).chain(volumes::binds(parts, role, places)).chain(shm).chain(others);
    let mounts = mounts.collect::<Vec<_>>().join(",");
    if !mounts.is_empty() {
        options.push(format!("--container-mounts={mounts}"));
    }
    if let Some(workdir) = &role.workdir {
        options.push(format!("--container-workdir={}", quote(workdir)));
    }
    options.push("--container-writable --no-container-mount-home".to_owned());
    options
}
