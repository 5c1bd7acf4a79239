//! Data and outputs: the cluster's storages, which the target names.

use jobc_schema::plan::{JobPlan, MountPlan, RolePlan};
use jobc_schema::target::OpenpaiStorage;

use super::shell::literal;

/// The storage that provides a volume.
pub(super) fn provider<'a>(job: &'a JobPlan, volume: &str) -> Option<&'a OpenpaiStorage> {
    let settings = job.target.settings.openpai.as_ref()?;
    settings.storages.iter().find(|storage| storage.provides.as_deref() == Some(volume))
}

/// Every mount of a volume in any role.
pub(super) fn mounts<'a>(job: &'a JobPlan, volume: &'a str) -> impl Iterator<Item = &'a MountPlan> {
    job.roles.iter().flat_map(|role| &role.mounts).filter(move |mount| mount.volume == volume)
}

/// Mount point of a storage: from the target, else from the first role of the job, else the default of OpenPAI.
pub(super) fn path(job: &JobPlan, storage: &OpenpaiStorage) -> Option<String> {
    storage.mount.clone().or_else(|| {
        let volume = storage.provides.as_deref()?;
        mounts(job, volume).next().map(|mount| mount.path.clone())
    })
}

/// Commands that make volumes available at the mount points of a role; a storage has one mount point for all roles.
pub(super) fn links(job: &JobPlan, role: &RolePlan) -> Vec<String> {
    let mut lines = Vec::new();
    for mount in &role.mounts {
        let Some(place) = provider(job, &mount.volume).and_then(|storage| path(job, storage)) else {
            continue;
        };
        if place == mount.path {
            continue;
        }
        if let Some((directory, _)) = mount.path.rsplit_once('/')
            && !directory.is_empty()
        {
            lines.push(format!("mkdir -p {}", literal(directory)));
        }
        lines.push(format!("ln -sfnT {} {}", literal(&place), literal(&mount.path)));
    }
    lines
}
