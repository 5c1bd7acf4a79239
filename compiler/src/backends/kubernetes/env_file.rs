//! Variables that need a sum, in the container's own environment: an init container adds up and writes a file, from
//! which the kubelet reads them (KEP-3721). That way, `kubectl exec` gets them too, and the image's own command can
//! run.

use jobc_schema::plan::{Piece, RolePlan, Text};
use jobc_schema::target::KubernetesGate;
use k8s_openapi::api::core::v1::{
    Container, EmptyDirVolumeSource, EnvVar, EnvVarSource, FileKeySelector, PodSpec, ResourceRequirements,
    Volume, VolumeMount,
};

use super::address::{Expander, PodAddress, escape, render_word};
use super::cluster::Cluster;
use super::env::index_variable;
use super::origins::Origins;
use super::release::JOBSET_ENV_FILES;
use super::shape::Shape;

/// The init container and its volume.
const NAME: &str = "jobc-env";
/// Where the init container sees the volume; the role's container does not see it.
const DIRECTORY: &str = "/jobc-env";
/// The file in the volume.
const FILE: &str = "env";

/// A variable from the file; none if the cluster or the kind does not have such files, or the file cannot hold the text.
pub(super) fn variable(cluster: &Cluster<'_>, name: &str, text: &Text) -> Option<EnvVar> {
    let knows_files = match cluster.shape {
        Shape::IndexedJob | Shape::Volcano => true,
        Shape::JobSet => cluster.releases.jobset >= JOBSET_ENV_FILES,
        _ => false,
    };
    let is_on = cluster.settings.gates.contains(&KubernetesGate::EnvFiles);
    // Each value is in single quotes, which nothing escapes.
    let is_plain = text.pieces().iter().all(|piece| match piece {
        Piece::Literal(literal) => !literal.contains(['\'', '\n', '\r']),
        Piece::Reference(_) => true,
    });
    (is_on && knows_files && is_plain).then(|| {
        let selector = FileKeySelector {
            key: name.to_owned(),
            optional: None,
            path: FILE.to_owned(),
            volume_name: NAME.to_owned(),
        };
        let source = EnvVarSource { file_key_ref: Some(selector), ..EnvVarSource::default() };
        EnvVar { name: name.to_owned(), value: None, value_from: Some(source) }
    })
}

/// Adds the init container that writes the file, with the image, user and limits of the role's container.
pub(super) fn add_writer(
    cluster: &Cluster<'_>,
    role: &RolePlan,
    variables: &[(&str, &Text)],
    spec: &mut PodSpec,
    origins: &mut Origins,
) {
    let Some(main) = spec.containers.first() else { return };
    let shell = PodAddress { cluster, role, by: Expander::Shell };
    let mut script = "printf \"%s='%s'\\n\"".to_owned();
    for (name, text) in variables {
        script += &format!(" {name} {}", render_word(text, &shell));
    }
    script += &format!(" > {DIRECTORY}/{FILE}\n");
    let writer = Container {
        name: NAME.to_owned(),
        image: main.image.clone(),
        command: Some(vec!["/bin/sh".to_owned(), "-euc".to_owned(), escape(&script)]),
        env: Some(vec![index_variable(cluster, role)]),
        resources: main.resources.as_ref().map(without_devices),
        security_context: main.security_context.clone(),
        volume_mounts: Some(vec![VolumeMount {
            name: NAME.to_owned(),
            mount_path: DIRECTORY.to_owned(),
            ..VolumeMount::default()
        }]),
        ..Container::default()
    };
    origins.fallback(["initContainers", "0"], "adds up ranks that do not begin at 0");
    spec.init_containers = Some(vec![writer]);
    spec.volumes.get_or_insert_default().push(Volume {
        name: NAME.to_owned(),
        empty_dir: Some(EmptyDirVolumeSource::default()),
        ..Volume::default()
    });
}

/// CPUs and memory alone. A pod needs the greater of what its init containers and its containers request, so the same
/// amounts cost nothing, and the pod keeps its class of service.
pub(super) fn without_devices(all: &ResourceRequirements) -> ResourceRequirements {
    let native = |list: &Option<std::collections::BTreeMap<String, _>>| {
        let mut list = list.clone()?;
        list.retain(|name: &String, _| matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage"));
        (!list.is_empty()).then_some(list)
    };
    ResourceRequirements { claims: None, limits: native(&all.limits), requests: native(&all.requests) }
}
