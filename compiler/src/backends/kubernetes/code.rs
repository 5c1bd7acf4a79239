//! The code of a job: ConfigMaps with pieces of its archive, or a claim for a large one, and an init container that
//! unpacks it.
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
    ConfigMap, ConfigMapProjection, Container, PersistentVolumeClaimVolumeSource, PodSpec,
    ProjectedVolumeSource, Volume, VolumeMount, VolumeProjection,
};

use crate::backend::{Context, File, FilePart, Origin, PartSource};
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
/// The annotation of the ConfigMap that stands for an archive in a claim: its whole digest.
const WHOLE_DIGEST: &str = "jobc.dev/code-digest";
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
    /// The claim that has the archive instead.
    claim: Option<ClaimedCode>,
}

/// Code that is too large for ConfigMaps.
#[derive(Debug)]
struct ClaimedCode {
    claim: String,
    /// The whole digest of the archive, which is its name.
    digest: String,
    /// The ConfigMap that says that it is there.
    marker: String,
    archive: File,
}

impl CodePieces {
    /// The pieces of the code; reports code that is too large.
    pub(super) fn of(job: &JobPlan, context: &Context<'_>, sink: &mut Sink) -> Self {
        let Some((path, digest)) = packed(job) else { return Self::default() };
        let Ok(Some(archive)) = context.files.code(path.into()) else { return Self::default() };
        let (whole, digest) = (digest.to_owned(), digest[..JobPlan::LABEL_LENGTH].to_owned());
        if archive.bytes.len() > MAX_BYTES {
            let settings = job.target.settings.kubernetes.as_ref();
            let claim = settings.and_then(|settings| settings.code_claim.clone());
            let Some((claim, archive)) = claim.zip(File::code(job, context)) else {
                sink.push(too_large(archive.bytes.len(), &archive.largest));
                return Self::default();
            };
            let marker = format!("{NAME}-{digest}-{claim}");
            let claim = Some(ClaimedCode { claim, digest: whole, marker, archive });
            return Self { digest, pieces: vec![], claim };
        }
        let pieces = archive.bytes.chunks(PIECE).enumerate();
        let pieces = pieces.map(|(n, piece)| (format!("{NAME}-{digest}-{n:02}"), piece.to_vec())).collect();
        Self { digest, pieces, claim: None }
    }

    /// The ConfigMaps.
    pub(super) fn objects(&self, cluster: &Cluster<'_>) -> Vec<Object> {
        let metadata = |name: &str| {
            let mut metadata = metadata::object(cluster, name);
            let labels = metadata.labels.get_or_insert_default();
            // They belong to every job with the same code.
            labels.remove(metadata::NAME);
            labels.insert(LABEL.to_owned(), self.digest.clone());
            metadata
        };
        let object = |map: ConfigMap, key: &str| {
            let name = map.metadata.name.clone()?;
            let value = serde_json::to_value(map).ok()?;
            let from = PartSource::Spec(Pointer::ROOT.key("code"));
            let origins = vec![Origin { part: FilePart::Pointer(Pointer::ROOT.key(key)), from }];
            Some(Object { kind: "ConfigMap", name, value, origins })
        };
        let piece = |(name, piece): &(String, Vec<u8>)| {
            let key = name.rsplit('-').next().unwrap_or_default().to_owned();
            let map = ConfigMap {
                metadata: metadata(name),
                binary_data: Some(BTreeMap::from([(key, ByteString(piece.clone()))])),
                immutable: Some(true),
                ..ConfigMap::default()
            };
            object(map, "binaryData")
        };
        let marker = self.claim.as_ref().and_then(|code| {
            let mut metadata = metadata(&code.marker);
            let annotations = metadata.annotations.get_or_insert_default();
            annotations.insert(WHOLE_DIGEST.to_owned(), code.digest.clone());
            let data = [("claim", code.claim.clone()), ("file", code.file())];
            let data = data.map(|(key, value)| (key.to_owned(), value));
            object(ConfigMap { metadata, data: Some(data.into()), ..ConfigMap::default() }, "data")
        });
        self.pieces.iter().filter_map(piece).chain(marker).collect()
    }

    /// The archive, where it is not in the ConfigMaps.
    pub(super) fn archive(self) -> Option<File> {
        self.claim.map(|code| code.archive)
    }

    /// Adds the init container that unpacks the code, with the image, user and limits of the role's container.
    pub(super) fn add_unpacker(&self, role: &RolePlan, spec: &mut PodSpec, origins: &mut Origins) {
        let Some(mount) = role.mounts.iter().find(|mount| mount.volume == CODE) else { return };
        let is_there = self.claim.is_some() || !self.pieces.is_empty();
        let Some(main) = spec.containers.first().filter(|_| is_there) else { return };
        let code = main.volume_mounts.iter().flatten().find(|own| own.mount_path == mount.path);
        let pieces = VolumeMount {
            name: PIECES.to_owned(),
            mount_path: DIRECTORY.to_owned(),
            read_only: Some(true),
            ..VolumeMount::default()
        };
        let read = match &self.claim {
            Some(code) => code.script(),
            None => format!("cat {DIRECTORY}/*"),
        };
        let script = format!(
            "command -v tar >/dev/null || {{ echo 'jobc: the image has no tar, which unpacks the code' >&2; exit 125; }}\n\
             {read} | tar -xzf - -C {}\n",
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
        let source = match &self.claim {
            Some(code) => Volume {
                persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                    claim_name: code.claim.clone(),
                    read_only: Some(true),
                }),
                ..Volume::default()
            },
            None => Volume { projected: Some(self.projected()), ..Volume::default() },
        };
        let at = Pointer::ROOT.key("code");
        let containers = spec.init_containers.get_or_insert_default();
        origins.spec(["initContainers", &containers.len().to_string()], &at);
        containers.push(unpacker);
        let volumes = spec.volumes.get_or_insert_default();
        origins.spec(["volumes", &volumes.len().to_string()], &at);
        volumes.push(Volume { name: PIECES.to_owned(), ..source });
    }

    fn projected(&self) -> ProjectedVolumeSource {
        let projection = |(name, _): &(String, Vec<u8>)| VolumeProjection {
            config_map: Some(ConfigMapProjection { name: name.clone(), ..ConfigMapProjection::default() }),
            ..VolumeProjection::default()
        };
        let sources = Some(self.pieces.iter().map(projection).collect());
        ProjectedVolumeSource { default_mode: None, sources }
    }
}

impl ClaimedCode {
    /// The archive's path in the claim.
    fn file(&self) -> String {
        format!("{NAME}/{}.tar.gz", self.digest)
    }

    /// Reads the archive, of which others could have changed the file.
    fn script(&self) -> String {
        let Self { claim, digest, marker, .. } = self;
        let file = format!("{DIRECTORY}/{}", self.file());
        let again = format!("delete the ConfigMap {marker}, and submit the job again");
        format!(
            "[ -f {file} ] || {{ echo 'jobc: the claim {claim} does not have the code; {again}' >&2; exit 125; }}\n\
             ! command -v sha256sum >/dev/null || echo '{digest}  {file}' | sha256sum -c - >/dev/null || \
             {{ echo 'jobc: the code in the claim {claim} is damaged; {again}' >&2; exit 125; }}\n\
             cat {file}"
        )
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
        .note("name what the job does not need in `.jobcignore`, put data on a volume under `data`, or name a claim for large code in `code_claim` of the target")
}
