//! The pod template of a role.

use jobc_schema::Pointer;
use jobc_schema::job::Network;
use jobc_schema::plan::{ImageSource, RolePlan};
use jobc_schema::resources::Publish;
use jobc_schema::role::UNLIMITED_RETRIES;
use k8s_openapi::api::core::v1::{
    Affinity, Container, ContainerPort, Lifecycle, LocalObjectReference, PodOS, PodResourceClaim,
    PodSecurityContext, PodSpec, PodTemplateSpec, Toleration,
};
use serde::de::DeserializeOwned;

use crate::backend::command::is_member;
use crate::diagnostic::{Diagnostic, Location, Sink, codes};
use crate::openpai::has_ssh;
use crate::resolve::RENDEZVOUS;

use super::affinity;
use super::claims;
use super::cluster::Cluster;
use super::command::command;
use super::config::{self, Configs};
use super::env::{Environment, environment};
use super::env_file;
use super::gpu::{self, PodRequest};
use super::host_names;
use super::kai;
use super::metadata;
use super::naming;
use super::origins::Origins;
use super::preflight;
use super::probe::probes;
use super::resources::resources;
use super::secrets;
use super::security::{file_group, security_context};
use super::settings::{RoleSettings, setting_at};
use super::shape::Shape;
use super::volumes::Volumes;

/// The name of the container in every pod, the same for all roles so that `kubectl logs -c main` works for each; only
/// Kubeflow Trainer wants another one.
const CONTAINER: &str = "main";

/// The time between SIGTERM and SIGKILL of a pod by default.
const DEFAULT_GRACE_PERIOD: u64 = 30;

/// The pod template of a role; the origins are of parts below its `spec`.
pub(super) fn template(
    cluster: &Cluster<'_>,
    configs: &Configs,
    role: &RolePlan,
    origins: &mut Origins,
    sink: &mut Sink,
) -> PodTemplateSpec {
    let settings = RoleSettings::of(cluster.settings, role);
    let given = gpu::pod_request(cluster.job, role);
    let given = given.as_ref();
    let mut volumes = Volumes::default();
    volumes.add_storage(cluster, role, !given.is_some_and(|given| given.shared_shm), origins);
    config::add_files(cluster, configs, role, &mut volumes, origins);
    if cluster.job.distributed.as_ref().is_some_and(|d| d.ssh.is_some()) && is_member(cluster.job, role) {
        config::add_ssh(cluster, false, &mut volumes, origins);
    } else if has_ssh(role) {
        config::add_ssh(cluster, true, &mut volumes, origins);
    }
    let env = environment(cluster, role, given, origins, sink);
    let in_file = env.in_file.clone();
    let mut container = container(cluster, role, given, &settings, env, origins, sink);
    container.volume_mounts = (!volumes.mounts.is_empty()).then_some(volumes.mounts);
    let serves = cluster.shape == Shape::LeaderWorkerSet;
    let restarts = cluster.shape == Shape::Pod && role.retry.max == UNLIMITED_RETRIES;
    let restart_policy = match (serves, restarts) {
        (true, _) => "Always",
        (false, true) => "OnFailure",
        (false, false) => "Never",
    };
    let mut spec = PodSpec {
        containers: vec![container],
        restart_policy: Some(restart_policy.to_owned()),
        subdomain: (cluster.shape == Shape::IndexedJob).then(|| cluster.job.name.clone()),
        volumes: (!volumes.volumes.is_empty()).then_some(volumes.volumes),
        ..PodSpec::default()
    };
    if restarts {
        origins.spec(["restartPolicy"], &role.at().key("retry"));
    } else {
        origins.fallback(
            ["restartPolicy"],
            if serves {
                "the only value of a LeaderWorkerSet"
            } else {
                "the Job controller makes new pods; containers are not restarted in place"
            },
        );
    }
    if role.grace_period_seconds != DEFAULT_GRACE_PERIOD {
        spec.termination_grace_period_seconds = i64::try_from(role.grace_period_seconds).ok();
        origins.spec(["terminationGracePeriodSeconds"], &role.at().key("grace_period"));
    }
    if role.stop_signal.is_some() {
        // Without it `stopSignal` is refused.
        spec.os = Some(PodOS { name: "linux".to_owned() });
        origins.spec(["os"], &role.at().key("stop_signal"));
    }
    if let Some(seconds) = role.timeout_seconds {
        spec.active_deadline_seconds = i64::try_from(seconds).ok();
        origins.spec(["activeDeadlineSeconds"], &role.at().key("timeout"));
    }
    if cluster.job.network == Network::Host {
        spec.host_network = Some(true);
        spec.dns_policy = Some("ClusterFirstWithHostNet".to_owned());
        for part in ["hostNetwork", "dnsPolicy"] {
            origins.spec([part], &Pointer::ROOT.key("network"));
        }
    }
    host_names::add(cluster.job, &mut spec, origins);
    if let Ok(Some(group)) = file_group(cluster.job, role) {
        spec.security_context =
            Some(PodSecurityContext { fs_group: Some(group), ..PodSecurityContext::default() });
        origins.spec(["securityContext", "fsGroup"], &role.at().key("files"));
    }
    if !in_file.is_empty() {
        env_file::add_writer(cluster, role, &in_file, &mut spec, origins);
    }
    configs.code.add_unpacker(role, &mut spec, origins);
    preflight::add(cluster, role, &mut spec, origins);
    place_pod(cluster, role, &settings, &mut spec, origins, sink);
    if kai::queue(cluster.job).is_some() && spec.scheduler_name.is_none() && given.is_none() {
        spec.scheduler_name = Some(kai::SCHEDULER.to_owned());
        origins.target(["schedulerName"], &["queue", "kai"]);
    }
    if let Some(given) = given {
        serve_gpus(cluster, role, given, &mut spec, origins);
    }
    PodTemplateSpec { metadata: Some(metadata::pod(cluster, role, given, &settings)), spec: Some(spec) }
}

/// Finds what [`template`] finds, and makes no pod.
pub(super) fn check(cluster: &Cluster<'_>, role: &RolePlan, sink: &mut Sink) {
    let settings = RoleSettings::of(cluster.settings, role);
    // The variables of a provider are never too long.
    let env = environment(cluster, role, None, &mut Origins::default(), sink);
    command(cluster, role, &env.sums, sink);
    tolerations(cluster, &settings, sink);
    own_affinity(cluster, &settings, sink);
}

/// What a pod needs besides resources to get its GPUs; the settings of the target take precedence.
fn serve_gpus(
    cluster: &Cluster<'_>,
    role: &RolePlan,
    given: &PodRequest,
    spec: &mut PodSpec,
    origins: &mut Origins,
) {
    let at = role.at().keys(["resources", "gpu"]);
    // The target may name the same one.
    if let Some(scheduler) = given.scheduler.filter(|_| spec.scheduler_name.is_none()) {
        spec.scheduler_name = Some(scheduler.to_owned());
        origins.spec(["schedulerName"], &at);
    }
    if given.host_ipc {
        spec.host_ipc = Some(true);
        origins.spec(["hostIPC"], &at);
    }
    if given.claim {
        let name = claims::object_name(cluster.job, role);
        let shared = claims::is_shared(cluster.job, role);
        spec.resource_claims = Some(vec![PodResourceClaim {
            name: claims::NAME.to_owned(),
            resource_claim_name: shared.then(|| name.clone()),
            resource_claim_template_name: (!shared).then_some(name),
        }]);
        origins.spec(["resourceClaims"], &at);
    }
    for (key, value) in &given.node_selector {
        let selector = spec.node_selector.get_or_insert_default();
        if !selector.contains_key(key) {
            selector.insert(key.clone(), value.clone());
            origins.spec(["nodeSelector", key], &at);
        }
    }
    for toleration in &given.tolerations {
        let there = spec.tolerations.get_or_insert_default();
        if !there.iter().any(|own| own.key == toleration.key) {
            origins.spec(["tolerations", &there.len().to_string()], &at);
            there.push(toleration.clone());
        }
    }
}

fn container(
    cluster: &Cluster<'_>,
    role: &RolePlan,
    given: Option<&PodRequest>,
    settings: &RoleSettings,
    env: Environment<'_>,
    origins: &mut Origins,
    sink: &mut Sink,
) -> Container {
    let at = role.at();
    let command = command(cluster, role, &env.sums, sink);
    let ports = ports(cluster, role, origins);
    for key in ["command", "args"] {
        if (key == "command" && command.command.is_some()) || (key == "args" && command.args.is_some()) {
            let run = if key == "command" { "run" } else { "args" };
            origins.spec(["containers", "0", key], &at.key(run));
        }
    }
    if let Some(image) = cluster.job.image_of(role) {
        origins.spec(["containers", "0", "image"], &image.declared_at);
    }
    if role.workdir.is_some() {
        origins.spec(["containers", "0", "workingDir"], &at.key("workdir"));
    }
    let trains = cluster.shape == Shape::TrainJob
        && naming::trainer(cluster.job).is_some_and(|own| own.name == role.name);
    let mut container = Container {
        name: if trains { naming::TRAINJOB_CONTAINER } else { CONTAINER }.to_owned(),
        image: image(cluster, role),
        command: command.command,
        args: command.args,
        working_dir: role.workdir.clone(),
        env: (!env.vars.is_empty()).then_some(env.vars),
        ports: (!ports.is_empty()).then_some(ports),
        resources: resources(cluster.job, role, given, &settings.pod, origins),
        security_context: Some(security_context(role, given, origins)),
        ..Container::default()
    };
    if let Some(signal) = &role.stop_signal {
        container.lifecycle = Some(Lifecycle { stop_signal: Some(signal.clone()), ..Lifecycle::default() });
        origins.spec(["containers", "0", "lifecycle", "stopSignal"], &at.key("stop_signal"));
    }
    probes(cluster, role, &mut container, origins);
    container
}

/// The image to pull: a reference unchanged, or a built image prefixed with the registry of the target.
fn image(cluster: &Cluster<'_>, role: &RolePlan) -> Option<String> {
    let image = cluster.job.image_of(role)?;
    Some(match (&image.source, &cluster.job.target.settings.registry) {
        (ImageSource::Build { .. } | ImageSource::Dockerfile { .. }, Some(registry)) => {
            format!("{}/{}", registry.trim_end_matches('/'), image.reference)
        }
        _ => image.reference.clone(),
    })
}

/// The ports that a container declares; a range is named once, because names must be unique.
///
/// The list is for people and schedulers. The port of a framework is listed only if it is one of the node, or the
/// controller reads it.
fn ports(cluster: &Cluster<'_>, role: &RolePlan, origins: &mut Origins) -> Vec<ContainerPort> {
    let is_read = cluster.job.network == Network::Host || cluster.shape == Shape::RayJob;
    let mut found = vec![];
    for port in &role.ports {
        let is_framework_s = port.label == RENDEZVOUS && port.auto;
        if is_framework_s && !is_read {
            continue;
        }
        let at = if is_framework_s {
            Pointer::ROOT.keys(["distributed", "framework"])
        } else {
            role.at().keys(["resources", "ports", &port.label])
        };
        for i in 0..port.count.max(1) {
            let Ok(number) = i32::try_from(u32::from(port.number) + i) else { continue };
            origins.spec(["containers", "0", "ports", &found.len().to_string()], &at);
            found.push(ContainerPort {
                name: (i == 0 && !port.label.contains("--")).then(|| port.label.clone()),
                container_port: number,
                host_port: (port.publish == Publish::Host).then_some(number),
                ..ContainerPort::default()
            });
        }
    }
    found
}

/// The scheduling of the pod, its service account, and its image pull secrets.
fn place_pod(
    cluster: &Cluster<'_>,
    role: &RolePlan,
    settings: &RoleSettings,
    spec: &mut PodSpec,
    origins: &mut Origins,
    sink: &mut Sink,
) {
    let pod = &settings.pod;
    let mut from_target = |there: bool, part: &str, key: &str| {
        if there {
            origins.target([part], &settings.place(key));
        }
    };
    from_target(!pod.node_selector.is_empty(), "nodeSelector", "node_selector");
    from_target(!pod.tolerations.is_empty(), "tolerations", "tolerations");
    from_target(pod.priority_class.is_some(), "priorityClassName", "priority_class");
    from_target(pod.scheduler.is_some(), "schedulerName", "scheduler");
    from_target(pod.service_account.is_some(), "serviceAccountName", "service_account");
    from_target(pod.runtime_class.is_some(), "runtimeClassName", "runtime_class");
    spec.node_selector =
        (!pod.node_selector.is_empty()).then(|| pod.node_selector.clone().into_iter().collect());
    spec.priority_class_name.clone_from(&pod.priority_class);
    spec.scheduler_name.clone_from(&pod.scheduler);
    spec.service_account_name.clone_from(&pod.service_account);
    spec.runtime_class_name.clone_from(&pod.runtime_class);
    let tolerations = tolerations(cluster, settings, sink);
    spec.tolerations = (!tolerations.is_empty()).then_some(tolerations);
    let own = own_affinity(cluster, settings, sink);
    let selected: Vec<&str> = pod.node_selector.keys().map(String::as_str).collect();
    let required = gpu::requirements(cluster.job, role, &selected);
    for requirement in required.iter().flatten() {
        let at = role.at().keys(["resources", "gpu", requirement.asked_by]);
        origins.spec(["affinity", "nodeAffinity"], &at);
    }
    spec.affinity = affinity::require(own, &required);
    let pulls: Vec<LocalObjectReference> = secrets::registry_secrets(cluster.job)
        .chain(pod.image_pull_secrets.iter().cloned())
        .map(|name| LocalObjectReference { name })
        .collect();
    spec.image_pull_secrets = (!pulls.is_empty()).then_some(pulls);
}

/// The tolerations that the target sets.
fn tolerations(cluster: &Cluster<'_>, settings: &RoleSettings, sink: &mut Sink) -> Vec<Toleration> {
    let all = settings.pod.tolerations.iter().enumerate();
    all.filter_map(|(i, toleration)| {
        let value = serde_json::Value::Object(toleration.clone().into_iter().collect());
        to_typed(cluster, settings, "tolerations", Some(i), &value, sink)
    })
    .collect()
}

/// The affinity that the target sets.
fn own_affinity(cluster: &Cluster<'_>, settings: &RoleSettings, sink: &mut Sink) -> Option<Affinity> {
    let affinity = settings.pod.affinity.as_ref()?;
    to_typed(cluster, settings, "affinity", None, affinity, sink)
}

/// A setting that is written as Kubernetes writes it, as its type; what does not fit is an error at the setting.
fn to_typed<T: DeserializeOwned + serde::Serialize>(
    cluster: &Cluster<'_>,
    settings: &RoleSettings,
    key: &str,
    index: Option<usize>,
    value: &serde_json::Value,
    sink: &mut Sink,
) -> Option<T> {
    let mut at = setting_at(cluster.job, settings.place(key));
    if let Some(index) = index.filter(|_| settings.place(key).len() == 1) {
        at = at.index(index);
    }
    let problem = match serde_json::from_value::<T>(value.clone()) {
        Ok(typed) => match super::order::lost_key(value, &serde_json::to_value(&typed).unwrap_or_default()) {
            None => return Some(typed),
            Some(lost) => format!("unknown field `{lost}`"),
        },
        Err(error) => error.to_string(),
    };
    sink.push(
        Diagnostic::error(
            codes::KUBERNETES_SETTING,
            format!("invalid `{key}` of target `{}`: {problem}", cluster.job.target.name),
        )
        .at_place(Location::target(&at), "")
        .note("use the syntax of the `spec` of a pod"),
    );
    None
}
