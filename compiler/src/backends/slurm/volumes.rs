//! Data and outputs: directories that the nodes have.

use jobc_schema::plan::{JobPlan, MountPlan, RolePlan, VolumeKind, VolumePlan, VolumeSource};
use jobc_schema::shell::quote;
use jobc_schema::target::{SlurmContainer, SlurmTarget};

use crate::backend::Context;
use crate::diagnostic::{Diagnostic, Sink, codes};

use super::code;
use super::parts::Parts;

/// A mount of a role as the shell sees it.
pub(super) struct Bind<'a> {
    /// The directory on the nodes, as one word.
    pub source: String,
    pub mount: &'a MountPlan,
    /// Whether it is created if missing.
    pub is_created: bool,
}

/// Where a script has the directories of a run, as words of the shell.
pub(super) struct Places {
    /// The directory of the script.
    pub(super) script: &'static str,
    /// The directory with the code.
    pub(super) code: &'static str,
    /// The same where it is assigned.
    pub(super) code_of_job: &'static str,
}

impl Places {
    /// In the scripts of tasks that jobc runs.
    pub(super) const NODE: Self =
        Self { script: "\"$jobc_directory\"", code: code::DIRECTORY, code_of_job: code::DIRECTORY };
    /// In a direct script.
    pub(super) const DIRECT: Self =
        Self { script: "\"$PWD\"", code: "\"$code\"", code_of_job: "${PWD%/*/*}/code-$SLURM_JOB_ID" };
}

impl Places {
    /// Whether jobc's own scripts run beside the command.
    pub(super) fn is_node(&self) -> bool {
        self.script == Self::NODE.script
    }
}

/// The mounts of a role, outer ones first.
pub(super) fn mounts<'a>(parts: &Parts<'_>, role: &'a RolePlan) -> Vec<Bind<'a>> {
    mounts_at(parts, role, &Places::NODE)
}

/// The same in a script of either form.
pub(super) fn mounts_at<'a>(parts: &Parts<'_>, role: &'a RolePlan, places: &Places) -> Vec<Bind<'a>> {
    let mut list: Vec<&MountPlan> = role.mounts.iter().collect();
    list.sort_by_key(|mount| mount.path.split('/').filter(|part| !part.is_empty()).count());
    let bind = |mount: &'a MountPlan| {
        let volume = parts.job.volumes.get(&mount.volume)?;
        let mut source = source(parts, &mount.volume, volume, places)?;
        if let Some(subpath) = &mount.subpath {
            source = format!("{source}/{}", quote(subpath));
        }
        let is_created = volume.kind == VolumeKind::Output
            || matches!(volume.source, VolumeSource::Job { .. } | VolumeSource::Instance { .. });
        Some(Bind { source, mount, is_created })
    };
    list.into_iter().filter_map(bind).collect()
}

/// The mounts as `SOURCE:PATH`, which pyxis and Apptainer take.
pub(super) fn binds(parts: &Parts<'_>, role: &RolePlan, places: &Places) -> Vec<String> {
    let text = |bind: Bind<'_>| {
        let access = if bind.mount.writable { "" } else { ":ro" };
        format!("{}:{}{access}", bind.source, quote(&bind.mount.path))
    };
    let binds =
        mounts_at(parts, role, places).into_iter().filter(|bind| !is_inside(parts, bind.mount)).map(text);
    binds.chain(devices(parts, role)).collect()
}

/// The devices of a container: enroot has all of the node's /dev, unless the cluster sets `ENROOT_RESTRICT_DEV`, and
/// Apptainer mounts it. Mounts of pyxis come after both (enroot 8ea147d, `src/runtime.sh`).
fn devices(parts: &Parts<'_>, role: &RolePlan) -> impl Iterator<Item = String> {
    let rdma = role.resources.rdma.is_some_and(|count| count > 0).then_some("/dev/infiniband");
    let is_pyxis = parts.container() == SlurmContainer::Pyxis;
    let written = role.resources.devices.iter().map(String::as_str);
    let rdma = rdma.filter(|path| !role.resources.devices.iter().any(|own| own == path));
    written.chain(rdma).filter(move |_| is_pyxis).map(|path| format!("{0}:{0}", quote(path)))
}

/// Whether a mount is a directory in the container itself, which pyxis makes for each task and removes after it. What is
/// mounted would have to exist on the node before a script of ours runs there.
pub(super) fn is_inside(parts: &Parts<'_>, mount: &MountPlan) -> bool {
    parts.container() == SlurmContainer::Pyxis && instance_volumes(parts, [mount]).next().is_some()
}

/// The mounts that are a directory of each instance.
pub(super) fn instance_volumes<'a>(
    parts: &Parts<'_>,
    mounts: impl IntoIterator<Item = &'a MountPlan>,
) -> impl Iterator<Item = &'a MountPlan> {
    mounts.into_iter().filter(|mount| {
        let volume = parts.job.volumes.get(&mount.volume);
        volume.is_some_and(|volume| matches!(volume.source, VolumeSource::Instance { .. }))
    })
}

/// The directory of a volume, as one word of the shell.
fn source(parts: &Parts<'_>, name: &str, volume: &VolumePlan, places: &Places) -> Option<String> {
    if let VolumeSource::Instance { .. } = volume.source {
        return Some(format!("\"$jobc_scratch\"/{name}"));
    }
    if let VolumeSource::Memory { .. } = volume.source {
        return None;
    }
    if let Some(path) = parts.settings.storage.get(name) {
        return Some(quote(path));
    }
    match &volume.source {
        VolumeSource::Path { path } if path.starts_with('/') => Some(quote(path)),
        VolumeSource::Path { path } => {
            let path = parts.context.to_job.join(path.trim_start_matches("./"));
            Some(format!("{}/../{}", places.script, quote(path.as_str())))
        }
        VolumeSource::Job { .. } => Some(format!("\"$jobc_run\"/volumes/{name}")),
        VolumeSource::Code { .. } => Some(places.code.to_owned()),
        VolumeSource::Instance { .. }
        | VolumeSource::Memory { .. }
        // Refused before.
        | VolumeSource::Nfs { .. }
        | VolumeSource::S3 { .. }
        | VolumeSource::Pvc { .. }
        | VolumeSource::Https { .. }
        | VolumeSource::Git { .. }
        | VolumeSource::Target {} => None,
    }
}

/// Reports mounts that no container makes: with `container: none` a path is where it is on the nodes.
pub(super) fn check(job: &JobPlan, settings: &SlurmTarget, context: &Context<'_>, sink: &mut Sink) {
    let separators: &[char] = match settings.container {
        SlurmContainer::Pyxis | SlurmContainer::Apptainer => &[':', ','],
        SlurmContainer::Jobc | SlurmContainer::Oci | SlurmContainer::None => &[],
    };
    for (name, volume) in &job.volumes {
        let at = volume.at(name);
        let path = match (settings.storage.get(name), &volume.source) {
            (Some(path), _) | (None, VolumeSource::Path { path }) => Some(path.as_str()),
            _ => None,
        };
        let users = || {
            let mounts = job.roles.iter().flat_map(|role| &role.mounts);
            mounts.filter(|mount| mount.volume == *name)
        };
        let paths = path.into_iter().chain(users().map(|mount| mount.path.as_str()));
        if let Some(path) = paths.into_iter().find(|path| path.contains(separators)) {
            sink.push(
                Diagnostic::error(codes::SLURM_MOUNT, format!("`{path}` cannot be mounted on this target"))
                    .at_key(&at, "")
                    .note("pyxis and Apptainer separate the parts of a mount by `:` and `,`; choose another path"),
            );
        }
        // Without a container, commands start in the code itself.
        if settings.container != SlurmContainer::None || matches!(volume.source, VolumeSource::Code { .. }) {
            continue;
        }
        let moved = users().find(|mount| mount.subpath.is_some() || path != Some(mount.path.as_str()));
        if let Some(mount) = moved {
            let message = format!("without a container nothing is mounted at `{}`", mount.path);
            let finding = if context.losses.allowed() {
                Diagnostic::warning(codes::SLURM_MOUNT, message)
            } else {
                Diagnostic::error(codes::SLURM_MOUNT, message)
            };
            sink.push(finding.at_key(&at, "").note(format!(
                "write the path of the nodes as `mount`, or as `slurm: {{storage: {{{name}: {}}}}}` in the target if it is there; or another `container`",
                mount.path
            )));
        }
    }
}
