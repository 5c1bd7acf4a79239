//! The options of the `srun` that starts tasks of a role.

use jobc_schema::plan::{RolePlan, VolumeSource};
use jobc_schema::shell::quote;
use jobc_schema::target::SlurmContainer;

use super::group::Group;
use super::parts::Parts;
use super::volumes::{self, Places};
use super::{header, run};

/// Whether Slurm itself starts the containers, one bundle for each instance.
pub(super) fn is_oci(parts: &Parts<'_>) -> bool {
    parts.container() == SlurmContainer::Oci
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
    let own = own.filter(|_| places.is_node());
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
