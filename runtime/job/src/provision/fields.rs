//! The volumes of a job file, and the names of its fields.

use std::path::{Path, PathBuf};

use jobc_schema::plan::{CODE, JobPlan, VolumeKind, VolumeSource};

use super::job::Job;
use super::large_data::large_data_directory;
use crate::directory::Directory;
use jobc_sys::error::{Error, Kind};

/// An error about a field of the job file.
pub(super) fn at_field(field: &str, what: &str) -> Error {
    Error::new(Kind::Config, what).at_field(field)
}

/// Whether the field of a volume is `data` or `outputs`.
pub(super) fn field_of(plan: &JobPlan, name: &str) -> String {
    if name == CODE {
        return "code".to_owned();
    }
    let output = plan.volumes.get(name).is_some_and(|volume| volume.kind == VolumeKind::Output);
    format!("{}.{name}.source", if output { "outputs" } else { "data" })
}

/// Names that roles mount, each once.
pub(super) fn mounted_volumes(plan: &JobPlan) -> impl Iterator<Item = &str> {
    let names: indexmap::IndexSet<&str> =
        plan.roles.iter().flat_map(|role| &role.mounts).map(|mount| mount.volume.as_str()).collect();
    names.into_iter()
}

/// A volume's path on this host: the target's storage, otherwise its own path; `None` for a fetched volume.
pub(super) fn host_path(job: &Job<'_>, name: &str) -> Option<PathBuf> {
    path_of_host(job.plan, &job.submission.directory, name)
}

/// Where a volume of a job is on this host; `base` is the base directory of relative paths in the job file. A fetched
/// volume is there only as long as the job.
pub fn volume_path(directory: &Directory, plan: &JobPlan, base: &Path, name: &str) -> PathBuf {
    let fetched = || large_data_directory(directory).join("volumes").join(name);
    path_of_host(plan, base, name).unwrap_or_else(fetched)
}

pub(super) fn path_of_host(plan: &JobPlan, base: &Path, name: &str) -> Option<PathBuf> {
    let storage = plan.target.settings.oci.as_ref().and_then(|oci| oci.storage.get(name));
    let ((Some(path), _) | (None, VolumeSource::Path { path } | VolumeSource::Code { path, .. })) =
        (storage, &plan.volumes.get(name)?.source)
    else {
        return None;
    };
    Some(base.join(path.trim_start_matches("./")))
}
