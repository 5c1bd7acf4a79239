//! The code of a job: ConfigMaps with pieces of its archive, and an init container that unpacks them.
//!
//! `kubectl apply` keeps each object in an annotation of that object, and annotations have at most 256 KiB, so that a
//! piece is smaller than a ConfigMap could be. The names are those of the content: jobs with the same code share the
//! ConfigMaps.

use std::collections::BTreeMap;

use jobc_schema::Pointer;
use jobc_schema::plan::{CODE, JobPlan, RolePlan, VolumeSource};
use jobc_schema::shell::quote;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{
    ConfigMap, ConfigMapProjection, Container, PodSpec, ProjectedVolumeSource, Volume, VolumeMount,
    VolumeProjection,
};

use crate::backend::{Context, FilePart, Origin, PartSource};
use crate::diagnostic::{Diagnostic, Sink, codes};

use super::address::escape;
use super::cluster::Cluster;
use super::env_file::without_devices;
use super::metadata;
use super::object::Object;
use super::origins::Origins;

/// Bytes of a piece: in base64, and with the rest of the object, less than the 256 KiB of annotations
/// (`TotalAnnotationSizeLimitB` of k8s.io/apimachinery).
const PIECE: usize = 180 << 10;
/// Bytes of all pieces, so that the 2 GiB of etcd have room for hundreds of versions.
const MAX_BYTES: usize = 4 << 20;
/// The label of the ConfigMaps, with the digest of the archive.
const LABEL: &str = "jobc.dev/code";
/// The init container, and the beginning of the names of the ConfigMaps.
const NAME: &str = "jobc-code";
/// The volume with the pieces.
const PIECES: &str = "jobc-code-pieces";
/// Where the init container alone mounts the pieces.
const DIRECTORY: &str = "/jobc-code";

/// The code of a job, ready for its pods.
#[derive(Debug, Default)]
pub(super) struct CodePieces {
    digest: String,
    /// The names of the ConfigMaps, each with its part of the archive.
    pieces: Vec<(String, Vec<u8>)>,
}

impl CodePieces {
    /// The pieces of the code; reports code that is too large.
    pub(super) fn of(job: &JobPlan, context: &Context<'_>, sink: &mut Sink) -> Self {
        let Some((path, digest)) = packed(job) else { return Self::default() };
        let Ok(Some(archive)) = context.files.code(path.into()) else { return Self::default() };
        if archive.bytes.len() > MAX_BYTES {
            sink.push(too_large(archive.bytes.len(), &archive.largest));
            return Self::default();
        }
        let digest = digest[..JobPlan::LABEL_LENGTH].to_owned();
        let pieces = archive.bytes.chunks(PIECE).enumerate();
        let pieces = pieces.map(|(n, piece)| (format!("{NAME}-{digest}-{n:02}"), piece.to_vec())).collect();
        Self { digest, pieces }
    }

    /// The ConfigMaps.
    pub(super) fn objects(self, cluster: &Cluster<'_>) -> Vec<Object> {
        let object = |(name, piece): (String, Vec<u8>)| {
            let mut metadata = metadata::object(cluster, &name);
            let labels = metadata.labels.get_or_insert_default();
            // They belong to every job with the same code.
            labels.remove(metadata::NAME);
            labels.insert(LABEL.to_owned(), self.digest.clone());
            let key = name.rsplit('-').next().unwrap_or_default().to_owned();
            let map = ConfigMap {
                metadata,
                binary_data: Some(BTreeMap::from([(key, ByteString(piece))])),
                immutable: Some(true),
                ..ConfigMap::default()
            };
            let value = serde_json::to_value(map).ok()?;
            let from = PartSource::Spec(Pointer::ROOT.key("code"));
            let origins = vec![Origin { part: FilePart::Pointer(Pointer::ROOT.key("binaryData")), from }];
            Some(Object { kind: "ConfigMap", name, value, origins })
        };
        self.pieces.into_iter().filter_map(object).collect()
    }

    /// Adds the init container that unpacks the code, with the image, user and limits of the role's container.
    pub(super) fn add_unpacker(&self, role: &RolePlan, spec: &mut PodSpec, origins: &mut Origins) {
        let Some(mount) = role.mounts.iter().find(|mount| mount.volume == CODE) else { return };
        let Some(main) = spec.containers.first().filter(|_| !self.pieces.is_empty()) else { return };
        let code = main.volume_mounts.iter().flatten().find(|own| own.mount_path == mount.path);
        let pieces = VolumeMount {
            name: PIECES.to_owned(),
            mount_path: DIRECTORY.to_owned(),
            read_only: Some(true),
            ..VolumeMount::default()
        };
        let script = format!(
            "command -v tar >/dev/null || {{ echo 'jobc: the image has no tar, which unpacks the code' >&2; exit 125; }}\n\
             cat {DIRECTORY}/* | tar -xzf - -C {}\n",
            quote(&mount.path)
        );
        let unpacker = Container {
            name: NAME.to_owned(),
            image: main.image.clone(),
            command: Some(vec!["/bin/sh".to_owned(), "-euc".to_owned(), escape(&script)]),
            resources: main.resources.as_ref().map(without_devices),
            security_context: main.security_context.clone(),
            // `jobc why` and `kubectl describe` show what it says.
            termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
            volume_mounts: Some(code.cloned().into_iter().chain([pieces]).collect()),
            ..Container::default()
        };
        let projection = |(name, _): &(String, Vec<u8>)| VolumeProjection {
            config_map: Some(ConfigMapProjection { name: name.clone(), ..ConfigMapProjection::default() }),
            ..VolumeProjection::default()
        };
        let sources = Some(self.pieces.iter().map(projection).collect());
        let at = Pointer::ROOT.key("code");
        let containers = spec.init_containers.get_or_insert_default();
        origins.spec(["initContainers", &containers.len().to_string()], &at);
        containers.push(unpacker);
        let volumes = spec.volumes.get_or_insert_default();
        origins.spec(["volumes", &volumes.len().to_string()], &at);
        volumes.push(Volume {
            name: PIECES.to_owned(),
            projected: Some(ProjectedVolumeSource { default_mode: None, sources }),
            ..Volume::default()
        });
    }
}

/// The directory and the digest of the packed code.
fn packed(job: &JobPlan) -> Option<(&str, &str)> {
    match &job.volumes.get(CODE)?.source {
        VolumeSource::Code { path, digest: Some(digest) } => {
            Some((path, digest.trim_start_matches("sha256:")))
        }
        _ => None,
    }
}

fn too_large(bytes: usize, largest: &[(String, u64)]) -> Diagnostic {
    let mebibytes = |bytes: u64| {
        let tenths = (bytes * 10).div_ceil(1 << 20);
        format!("{}.{} MiB", tenths / 10, tenths % 10)
    };
    let message = format!(
        "the code is {} packed, and ConfigMaps hold at most {} MiB of it",
        mebibytes(bytes as u64),
        MAX_BYTES >> 20
    );
    let shown = largest.iter().map(|(name, bytes)| format!("`{name}` ({})", mebibytes(*bytes)));
    Diagnostic::error(codes::CODE_SIZE, message)
        .at(&Pointer::ROOT.key("code"), "")
        .note(format!("the largest entries before packing: {}", shown.collect::<Vec<_>>().join(", ")))
        .note("name what the job does not need in `.jobcignore`, put data on a volume under `data`, or copy the code into the image")
}
