//! The programs beside the job file that go with a role, and may name variables of jobc.

use camino::Utf8Path;
use jobc_schema::Pointer;
use jobc_schema::plan::{BuildStep, ImageSource, JobPlan, RolePlan, VolumeSource};

use crate::asks::Asks;
use crate::files::Files;

/// Adds what the programs of a role name: its code, its data in directories of the job, the files that its image copies,
/// and the directory in which the job is started, if it sees that.
pub(super) fn read(plan: &JobPlan, role: &RolePlan, files: &dyn Files, asks: &mut Asks) {
    let mut found: Vec<(&str, Pointer)> = vec![];
    for mount in &role.mounts {
        let Some(volume) = plan.volumes.get(&mount.volume) else { continue };
        if let VolumeSource::Code { path, .. } | VolumeSource::Path { path } = &volume.source {
            found.push((path, volume.at(&mount.volume)));
        }
    }
    if let Some(image) = plan.image_of(role) {
        let at = &image.declared_at;
        match &image.source {
            ImageSource::Build { steps, .. } => {
                let copies = steps.iter().filter_map(|step| match step {
                    BuildStep::Copy(copy) if copy.image.is_none() => Some(copy.from.as_str()),
                    _ => None,
                });
                found.extend(copies.map(|from| (from, at.key("copy"))));
            }
            ImageSource::Dockerfile { path, context, .. } => {
                found.extend([path, context].map(|path| (path.as_str(), at.clone())));
            }
            ImageSource::Host { cwd: true, .. } => found.push((".", at.clone())),
            _ => {}
        }
    }
    for (path, at) in found {
        let path = path.trim_start_matches("./").trim_end_matches('/');
        // A path of the host is the same everywhere only by chance.
        if !path.starts_with('/') {
            asks.add(files.mentions(Utf8Path::new(if path.is_empty() { "." } else { path })), &at);
        }
    }
}
