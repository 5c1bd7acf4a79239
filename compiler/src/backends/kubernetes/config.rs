//! Small files: ConfigMaps for text, Secret volumes for secrets, each file mounted at its own path.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;
use jobc_schema::Pointer;
use jobc_schema::plan::{FileContent, FilePlan, Reference, RolePlan, SecretPlan};
use k8s_openapi::api::core::v1::{
    ConfigMap, ConfigMapVolumeSource, KeyToPath, SecretVolumeSource, Volume, VolumeMount,
};

use crate::backend::PartSource;
use crate::backend::address::render;
use crate::backend::reasons::Reasons;
use crate::diagnostic::{Diagnostic, Sink, codes};

use super::address::{Expander, PodAddress, min_length};
use super::cluster::Cluster;
use super::code::CodePieces;
use super::metadata;
use super::naming::is_unknown_to_ray;
use super::object::Object;
use super::origins::Origins;
use super::secrets;
use super::shape::Shape;
use super::volumes::Volumes;

/// The maximum size of a ConfigMap: `MaxSecretSize` of k8s.io/kubernetes, 1 MiB, for keys and values together.
const MAX_BYTES: usize = 1 << 20;
/// The mode of files in a volume where nothing else is said.
const DEFAULT_MODE: u32 = 0o644;

/// The ConfigMaps of a job, and which key of which map each file of a role is.
#[derive(Debug, Default)]
pub(super) struct Configs {
    /// The maps' data by name.
    pub maps: IndexMap<String, BTreeMap<String, String>>,
    /// For each role the map and the keys of its text files, by path.
    pub roles: IndexMap<String, (String, Vec<(String, String)>)>,
    /// The code of the job.
    pub code: CodePieces,
}

/// Collects the text files of all roles: in one ConfigMap that shares equal texts, or, if that would be too large, in
/// one per role.
pub(super) fn configs(cluster: &Cluster<'_>, sink: &mut Sink) -> Configs {
    let job = cluster.job;
    let mut texts: Vec<(&RolePlan, Vec<(&FilePlan, String)>)> = vec![];
    let mut bytes = 0;
    let mut seen = BTreeSet::new();
    for role in &job.roles {
        let files = text_files(cluster, role, sink);
        for (file, text) in &files {
            if seen.insert((file.path.clone(), digest(text))) {
                bytes += text.len() + file.path.len();
            }
        }
        if !files.is_empty() {
            texts.push((role, files));
        }
    }
    let mut configs = Configs::default();
    let shared = bytes <= MAX_BYTES;
    for (role, files) in texts {
        let map =
            if shared { format!("{}-files", job.name) } else { format!("{}-{}-files", job.name, role.name) };
        let data = configs.maps.entry(map.clone()).or_default();
        let mut keys = vec![];
        for (file, text) in files {
            let key = insert(data, &file.path, &role.name, text);
            keys.push((file.path.clone(), key));
        }
        if !shared {
            refuse_large(role, data, sink);
        }
        configs.roles.insert(role.name.clone(), (map, keys));
    }
    configs
}

/// A role's files with text, rendered.
fn text_files<'r>(cluster: &Cluster<'_>, role: &'r RolePlan, sink: &mut Sink) -> Vec<(&'r FilePlan, String)> {
    let at = PodAddress { cluster, role, by: Expander::Kubelet };
    let mut found = vec![];
    for (file, ours) in
        role.provided_files.iter().map(|f| (f, true)).chain(role.files.iter().map(|f| (f, false)))
    {
        let FileContent::Text(text) = &file.content else { continue };
        if ours && role.files.iter().any(|own| own.path == file.path) {
            continue;
        }
        if ours && cluster.shape == Shape::RayJob && is_unknown_to_ray(role, text) {
            continue;
        }
        let number = |r: &Reference| {
            matches!(r, Reference::Index {} | Reference::Rank { .. } | Reference::Host { index: None, .. })
        };
        let of_group = |r: &Reference| matches!(r, Reference::Host { .. } | Reference::Hosts { .. });
        let varies = role.instances > 1 && text.references().any(number)
            || cluster.groups() > 1 && text.references().any(of_group);
        // `support` rejects a user's file that differs between instances.
        if varies && !ours {
            continue;
        }
        let rendered =
            if varies || min_length(text, &at) > MAX_BYTES { None } else { Some(render(text, &at)) };
        match rendered.filter(|text| text.len() <= MAX_BYTES) {
            Some(text) => found.push((file, text)),
            None if ours => sink.push(
                Diagnostic::info(
                    codes::KUBERNETES_LEFT_OUT,
                    format!("role `{}` does not get the file `{}`", role.name, file.path),
                )
                .at_key(&role.at(), "")
                .note(if varies {
                    "a ConfigMap is the same for all pods of a role, and the file differs by instance or group"
                } else {
                    "a ConfigMap holds at most 1 MiB, and the file lists more instances than fit"
                }),
            ),
            None => sink.push(too_large(role, &file.path)),
        }
    }
    found
}

/// Puts a text into a map under a key made of its path; another text of the same path gets a key with the role's name.
fn insert(data: &mut BTreeMap<String, String>, path: &str, role: &str, text: String) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let base: String = path.trim_start_matches('/').replace('/', ".").chars().map(plain).take(200).collect();
    let base = if base.trim_matches('.').is_empty() { "file".to_owned() } else { base };
    let candidates = [base.clone(), format!("{base}.{role}")].into_iter();
    let numbered = (2_u32..).map(|n| format!("{base}.{role}.{n}"));
    for key in candidates.chain(numbered) {
        match data.get(&key) {
            Some(known) if *known != text => {}
            Some(_) => return key,
            None => {
                data.insert(key.clone(), text);
                return key;
            }
        }
    }
    base
}

fn refuse_large(role: &RolePlan, data: &BTreeMap<String, String>, sink: &mut Sink) {
    let total: usize = data.iter().map(|(key, text)| key.len() + text.len()).sum();
    if total > MAX_BYTES
        && let Some(largest) = role.files.iter().max_by_key(|file| match &file.content {
            FileContent::Text(text) => text.as_literal().map_or(0, str::len),
            FileContent::Secret { .. } => 0,
        })
    {
        sink.push(too_large(role, &largest.path));
    }
}

fn too_large(role: &RolePlan, path: &str) -> Diagnostic {
    Diagnostic::error(
        codes::KUBERNETES_SIZE,
        format!("the files of role `{}` do not fit into a ConfigMap, which holds at most 1 MiB", role.name),
    )
    .at_key(&role.at().keys(["files", path]), "the largest of them")
    .note("copy large files into the image (`image.copy`), or put them on a volume under `data`")
}

/// Adds the small files of a role to its volumes.
pub(super) fn add_files(
    cluster: &Cluster<'_>,
    configs: &Configs,
    role: &RolePlan,
    volumes: &mut Volumes,
    origins: &mut Origins,
) {
    let modes: BTreeMap<&str, u32> =
        role.provided_files.iter().chain(&role.files).map(|file| (file.path.as_str(), file.mode)).collect();
    if let Some((map, keys)) = configs.roles.get(&role.name) {
        let mode_of = |path: &str| modes.get(path).copied().filter(|mode| *mode != DEFAULT_MODE);
        // A list is of all keys that the volume has.
        let has_modes = keys.iter().any(|(path, _)| mode_of(path).is_some());
        let items = || keys.iter().map(|(path, key)| item(key, mode_of(path))).collect();
        let source = ConfigMapVolumeSource {
            name: map.clone(),
            items: has_modes.then(items),
            ..ConfigMapVolumeSource::default()
        };
        if let Some((path, _)) = keys.first() {
            origins.from(volumes.next(), file_reason(cluster, role, path));
        }
        volumes.volumes.push(Volume {
            name: "jobc-files".to_owned(),
            config_map: Some(source),
            ..Volume::default()
        });
        for (path, key) in keys {
            origins.from(volumes.next_mount(), file_reason(cluster, role, path));
            volumes.mounts.push(mount("jobc-files", path, key));
        }
    }
    let mut stores: IndexMap<String, Vec<(String, &FilePlan)>> = IndexMap::new();
    for file in &role.files {
        let FileContent::Secret { secret } = &file.content else { continue };
        let (object, key) = match cluster.job.secrets.get(secret) {
            Some(SecretPlan::Store { name, key }) => (name.clone(), key.clone()),
            _ => (secrets::job_secret(cluster.job), secret.clone()),
        };
        stores.entry(object).or_default().push((key, file));
    }
    for (number, (object, files)) in stores.into_iter().enumerate() {
        let name = if number == 0 { "jobc-secrets".to_owned() } else { format!("jobc-secrets-{number}") };
        let mut items: Vec<KeyToPath> = vec![];
        for (key, file) in files {
            // The same key may be at two places with different modes, so each file has its own item.
            let path = items.len().to_string();
            for part in [volumes.next_mount(), volumes.next()] {
                origins.from(part, file_reason(cluster, role, &file.path));
            }
            volumes.mounts.push(mount(&name, &file.path, &path));
            let mode = i32::try_from(file.mode).ok().filter(|_| file.mode != DEFAULT_MODE);
            items.push(KeyToPath { key, path, mode });
        }
        let source = SecretVolumeSource {
            secret_name: Some(object),
            items: Some(items),
            ..SecretVolumeSource::default()
        };
        volumes.volumes.push(Volume { name, secret: Some(source), ..Volume::default() });
    }
}

/// Why a role has a file.
pub(super) fn file_reason(cluster: &Cluster<'_>, role: &RolePlan, path: &str) -> PartSource {
    if role.files.iter().any(|file| file.path == path) {
        return PartSource::Spec(role.at().keys(["files", path]));
    }
    Reasons::of(cluster.job, role).file(path)
}

/// Adds the keys of the job's ssh where a role takes part in it; `optional` where it can do without.
pub(super) fn add_ssh(cluster: &Cluster<'_>, optional: bool, volumes: &mut Volumes, origins: &mut Origins) {
    let from = if optional { vec!["compat"] } else { vec!["distributed", "ssh"] };
    for part in [volumes.next(), volumes.next_mount()] {
        origins.spec(part, &Pointer::ROOT.keys(&from));
    }
    let source = SecretVolumeSource {
        secret_name: Some(secrets::ssh_secret(cluster.job)),
        optional: optional.then_some(true),
        ..SecretVolumeSource::default()
    };
    volumes.volumes.push(Volume { name: "jobc-ssh".to_owned(), secret: Some(source), ..Volume::default() });
    volumes.mounts.push(VolumeMount {
        name: "jobc-ssh".to_owned(),
        mount_path: "/etc/jobc/ssh".to_owned(),
        ..VolumeMount::default()
    });
}

fn item(key: &str, mode: Option<u32>) -> KeyToPath {
    KeyToPath {
        key: key.to_owned(),
        path: key.to_owned(),
        mode: mode.and_then(|mode| i32::try_from(mode).ok()),
    }
}

/// The mount of one file; ConfigMaps and Secrets are always read-only.
fn mount(volume: &str, path: &str, key: &str) -> VolumeMount {
    VolumeMount {
        name: volume.to_owned(),
        mount_path: path.to_owned(),
        sub_path: Some(key.to_owned()),
        ..VolumeMount::default()
    }
}

/// The ConfigMaps as objects.
pub(super) fn objects(
    cluster: &Cluster<'_>,
    maps: IndexMap<String, BTreeMap<String, String>>,
) -> Vec<Object> {
    let object = |(name, data): (String, BTreeMap<String, String>)| {
        let map = ConfigMap {
            metadata: metadata::object(cluster, &name),
            data: Some(data),
            ..ConfigMap::default()
        };
        let value = serde_json::to_value(map).ok()?;
        Some(Object { kind: "ConfigMap", name, value, origins: vec![] })
    };
    maps.into_iter().filter_map(object).collect()
}

/// A short digest of a text, to count equal texts once without keeping two copies.
fn digest(text: &str) -> [u8; 32] {
    use sha2::{Digest, Sha256};
    Sha256::digest(text.as_bytes()).into()
}
