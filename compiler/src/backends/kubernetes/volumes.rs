//! Data and outputs as pod volumes.

use jobc_schema::plan::{JobPlan, RolePlan, VolumeKind, VolumePlan, VolumeSource};
use std::collections::BTreeMap;

use jobc_schema::target::{KubernetesTarget, Storage, StorageClaim};
use k8s_openapi::api::core::v1::{
    EmptyDirVolumeSource, EphemeralVolumeSource, HostPathVolumeSource, NFSVolumeSource,
    PersistentVolumeClaimSpec, PersistentVolumeClaimTemplate, PersistentVolumeClaimVolumeSource, Volume,
    VolumeMount, VolumeResourceRequirements,
};

use crate::backend::Unsupported;

use super::cluster::Cluster;
use super::devices;
use super::origins::Origins;
use super::quantity::bytes;
use super::settings::RoleSettings;

/// The volumes of a pod and where its container sees them.
#[derive(Debug, Default)]
pub(super) struct Volumes {
    /// `spec.volumes`.
    pub volumes: Vec<Volume>,
    /// `volumeMounts` of the container.
    pub mounts: Vec<VolumeMount>,
}

impl Volumes {
    /// The place of the next volume, below the `spec` of the pod.
    pub(super) fn next(&self) -> Vec<String> {
        vec!["volumes".to_owned(), self.volumes.len().to_string()]
    }

    /// The place of the next mount.
    pub(super) fn next_mount(&self) -> Vec<String> {
        ["containers", "0", "volumeMounts", &self.mounts.len().to_string()].map(str::to_owned).to_vec()
    }

    /// Adds the data and outputs of a role, and its own /dev/shm unless it shares that of a GPU server.
    pub(super) fn add_storage(
        &mut self,
        cluster: &Cluster<'_>,
        role: &RolePlan,
        own_shm: bool,
        origins: &mut Origins,
    ) {
        for mount in &role.mounts {
            let Some(plan) = cluster.job.volumes.get(&mount.volume) else { continue };
            let entry = cluster.settings.storage.get(&mount.volume);
            let Ok(mut volume) = volume(&mount.volume, plan, cluster.settings) else { continue };
            volume.name = volume_name(&mount.volume, plan);
            let spec = plan.at(&mount.volume);
            if self.volumes.iter().all(|known| known.name != volume.name) {
                let number = self.volumes.len().to_string();
                match entry {
                    Some(_) => origins.target(["volumes", &number], &["storage", &mount.volume]),
                    None => origins.spec(["volumes", &number], &spec),
                }
                self.volumes.push(volume);
            }
            let number = self.mounts.len().to_string();
            origins.spec(["containers", "0", "volumeMounts", &number], &spec);
            self.mounts.push(VolumeMount {
                name: volume_name(&mount.volume, plan),
                mount_path: mount.path.clone(),
                read_only: (!mount.writable).then_some(true),
                sub_path: sub_path(cluster, plan, entry, mount.subpath.as_deref()),
                ..VolumeMount::default()
            });
        }
        let settings = RoleSettings::of(cluster.settings, role);
        for (number, path) in devices::mounted(&settings.pod, role) {
            let at = role.at().keys(["resources", "devices"]).index(number);
            origins.spec(["volumes", &self.volumes.len().to_string()], &at);
            origins.spec(["containers", "0", "volumeMounts", &self.mounts.len().to_string()], &at);
            let name = format!("jobc-device-{number}");
            let host_path = Some(HostPathVolumeSource { path: path.clone(), type_: None });
            self.volumes.push(Volume { name: name.clone(), host_path, ..Volume::default() });
            self.mounts.push(VolumeMount { name, mount_path: path.clone(), ..VolumeMount::default() });
        }
        if let Some(size) = role.resources.shm_bytes.filter(|_| own_shm) {
            let at = role.at().keys(["resources", "shm"]);
            origins.spec(["volumes", &self.volumes.len().to_string()], &at);
            origins.spec(["containers", "0", "volumeMounts", &self.mounts.len().to_string()], &at);
            self.volumes.push(Volume {
                name: "jobc-shm".to_owned(),
                empty_dir: Some(memory(size)),
                ..Volume::default()
            });
            self.mounts.push(VolumeMount {
                name: "jobc-shm".to_owned(),
                mount_path: "/dev/shm".to_owned(),
                ..VolumeMount::default()
            });
        }
    }
}

/// The directory in a volume: the target's, below it a separate one for a directory of the job, and the role's below
/// that.
fn sub_path(
    cluster: &Cluster<'_>,
    plan: &VolumePlan,
    entry: Option<&Storage>,
    of_role: Option<&str>,
) -> Option<String> {
    let own = matches!(plan.source, VolumeSource::Job { .. }) && entry.is_some_and(|entry| !entry.ephemeral);
    let of_target = entry.and_then(|entry| entry.sub_path.as_deref()).map(|path| path.trim_end_matches('/'));
    let of_job = own.then_some(cluster.job.name.as_str());
    let parts: Vec<&str> = of_target.into_iter().chain(of_job).chain(of_role).collect();
    (!parts.is_empty()).then(|| parts.join("/"))
}

/// Why a pod's own directory cannot hand files to other pods.
pub(super) fn refuse_one_pods(name: &str, plan: &VolumePlan, job: &JobPlan) -> Option<String> {
    let entry = job.target.settings.kubernetes.as_ref()?.storage.get(name)?;
    let sees = |role: &&RolePlan| role.mounts.iter().any(|mount| mount.volume == name);
    let pods: u32 = job.roles.iter().filter(sees).map(|role| role.instances).sum();
    (entry.ephemeral && matches!(plan.source, VolumeSource::Job { .. }) && pods > 1).then(|| {
        format!(
            "`ephemeral` of the target's `storage` is a directory of each pod, and {pods} pods share `{name}`; write `storage: {{{name}: {{pvc: NAME}}}}` for a claim that several nodes can mount"
        )
    })
}

/// The name of a volume in a pod: its own, kept apart from those that begin with `jobc-`, which are ours.
fn volume_name(name: &str, plan: &VolumePlan) -> String {
    if matches!(plan.source, VolumeSource::Code { .. }) {
        return name.to_owned();
    }
    let mut rest = name;
    while let Some(shorter) = rest.strip_prefix("volume-") {
        rest = shorter;
    }
    if rest.starts_with("jobc-") { format!("volume-{name}") } else { name.to_owned() }
}

/// What provides a volume of the job, or why nothing does and what to write.
pub(super) fn volume(
    name: &str,
    plan: &VolumePlan,
    settings: &KubernetesTarget,
) -> Result<Volume, Unsupported> {
    let is_memory =
        matches!(plan.source, VolumeSource::Memory { .. } | VolumeSource::Job { in_memory: true });
    if let Some(entry) = settings.storage.get(name).filter(|_| !is_memory) {
        return from_entry(name, entry, plan);
    }
    let write = |what: &str| format!("write `storage: {{{name}: {what}}}` under `kubernetes` of the target");
    let mut volume = Volume::default();
    match &plan.source {
        VolumeSource::Pvc { name } => volume.persistent_volume_claim = Some(claim(name)),
        VolumeSource::Nfs { host, path } => volume.nfs = Some(nfs(host, path)),
        VolumeSource::Path { path } if !path.starts_with('/') => {
            return Err(format!(
                "`{path}` is relative to the job file and does not exist on the nodes of a cluster; {}",
                write("{pvc: NAME}")
            )
            .into());
        }
        VolumeSource::Path { path } if settings.host_paths => {
            volume.host_path = Some(host_path(path, plan.kind));
        }
        VolumeSource::Path { path } => {
            return Err(format!(
                "`{path}` is a path on one host, and a pod can run on any host; {}, or `host_paths: true` if every node has that path",
                write("{pvc: NAME}")
            ).into());
        }
        VolumeSource::S3 { bucket, .. } => {
            return Err(format!(
                "a pod cannot mount the bucket `{bucket}` directly; {} for a claim that a CSI driver fills from it",
                write("{pvc: NAME}")
            ).into());
        }
        VolumeSource::Https { .. } => {
            return Err(format!(
                "this version does not download files into pods; put the file on a volume and {}, or download it in `setup`",
                write("{pvc: NAME}")
            ).into());
        }
        VolumeSource::Git { .. } => {
            return Err(format!(
                "this version does not clone repositories into pods; clone it in `setup`, copy it into the image, or {}",
                write("{pvc: NAME}")
            ).into());
        }
        VolumeSource::Job { in_memory: true } => {
            return Err(format!(
                "pods share no memory, and roles are pods of their own; run both programs in one role, with `resources: {{shm: 8GiB}}` instead of `{name}`"
            ).into());
        }
        VolumeSource::Job { in_memory: false } => {
            return Err(format!(
                "a cluster has no directory that several pods share and that ends with a job; {} for a claim that several nodes can mount, in which the job gets a directory of its own",
                write("{pvc: NAME}")
            ).into());
        }
        VolumeSource::Memory { size_bytes } => volume.empty_dir = Some(memory(*size_bytes)),
        VolumeSource::Instance { size_bytes } => volume.empty_dir = Some(own_directory(*size_bytes)),
        VolumeSource::Code { .. } => volume.empty_dir = Some(own_directory(None)),
        VolumeSource::Target {} => {
            return Err(format!("the target has no storage for `{name}`; {}", write("{pvc: NAME}")).into());
        }
    }
    Ok(volume)
}

/// What an entry of the target's `storage` provides.
fn from_entry(name: &str, entry: &Storage, plan: &VolumePlan) -> Result<Volume, Unsupported> {
    let mut volume = Volume::default();
    let count = usize::from(entry.pvc.is_some())
        + usize::from(entry.host_path.is_some())
        + usize::from(entry.nfs.is_some())
        + usize::from(entry.ephemeral)
        + usize::from(entry.claim.is_some());
    if count != 1 {
        return Err(format!(
            "the target's `storage` entry `{name}` must have exactly one of `pvc`, `host_path`, `nfs`, `ephemeral`, `claim`"
        ).into());
    }
    let size = if let VolumeSource::Instance { size_bytes } = plan.source { Some(size_bytes) } else { None };
    match (&entry.claim, size) {
        (Some(claim), Some(Some(size))) => volume.ephemeral = Some(claim_of_pod(claim, size)),
        (Some(_), Some(None)) => {
            return Err(format!(
                "the `claim` of each pod needs a size; write `instance:100GiB` as the source of `{name}`"
            )
            .into());
        }
        (Some(_), None) => {
            return Err(format!(
                "`claim` of the target's `storage` is an empty volume of each pod; write `source: \"instance:100GiB\"` and `writable: true` for `{name}`, or `pvc` in the target"
            ).into());
        }
        (None, Some(_)) if !entry.ephemeral => {
            return Err(format!(
                "the target's `storage` entry `{name}` is one volume for all pods; write `claim: {{}}` for a volume of each, or leave the entry out"
            ).into());
        }
        _ => {}
    }
    if entry.claim.is_some() {
        return Ok(volume);
    }
    if let Some(name) = &entry.pvc {
        volume.persistent_volume_claim = Some(claim(name));
    } else if let Some(path) = &entry.host_path {
        volume.host_path = Some(host_path(path, plan.kind));
    } else if let Some(export) = &entry.nfs {
        let parts = export
            .strip_prefix("nfs://")
            .map_or_else(|| export.split_once(":/"), |rest| rest.split_once('/'));
        let Some((host, path)) = parts.filter(|(host, _)| !host.is_empty()) else {
            return Err(format!(
                "the target's `storage` entry `{name}` has `nfs: {export}`; write `HOST:/PATH` or `nfs://HOST/PATH`"
            ).into());
        };
        volume.nfs = Some(nfs(host, &format!("/{path}")));
    } else {
        volume.empty_dir = Some(own_directory(size.flatten()));
    }
    Ok(volume)
}

/// A directory of the pod on the disk of its node.
fn own_directory(size: Option<u64>) -> EmptyDirVolumeSource {
    EmptyDirVolumeSource { medium: None, size_limit: size.map(bytes) }
}

/// A directory of the pod in memory.
fn memory(size: u64) -> EmptyDirVolumeSource {
    EmptyDirVolumeSource { medium: Some("Memory".to_owned()), size_limit: Some(bytes(size)) }
}

/// A claim that is made and deleted with the pod.
fn claim_of_pod(claim: &StorageClaim, size: u64) -> EphemeralVolumeSource {
    let requests = BTreeMap::from([("storage".to_owned(), bytes(size))]);
    let spec = PersistentVolumeClaimSpec {
        access_modes: Some(vec!["ReadWriteOnce".to_owned()]),
        resources: Some(VolumeResourceRequirements { requests: Some(requests), limits: None }),
        storage_class_name: claim.class.clone(),
        ..PersistentVolumeClaimSpec::default()
    };
    EphemeralVolumeSource {
        volume_claim_template: Some(PersistentVolumeClaimTemplate { metadata: None, spec }),
    }
}

fn claim(name: &str) -> PersistentVolumeClaimVolumeSource {
    PersistentVolumeClaimVolumeSource { claim_name: name.to_owned(), read_only: None }
}

fn nfs(host: &str, path: &str) -> NFSVolumeSource {
    NFSVolumeSource { server: host.to_owned(), path: path.to_owned(), read_only: None }
}

/// Data must exist; outputs are created if missing.
fn host_path(path: &str, kind: VolumeKind) -> HostPathVolumeSource {
    let type_ = if kind == VolumeKind::Data { "Directory" } else { "DirectoryOrCreate" };
    HostPathVolumeSource { path: path.to_owned(), type_: Some(type_.to_owned()) }
}
