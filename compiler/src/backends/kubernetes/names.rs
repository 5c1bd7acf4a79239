//! Names that Kubernetes derives from those of the job and its roles, checked before the cluster would reject them.

use jobc_schema::Pointer;
use jobc_schema::plan::RolePlan;

use crate::diagnostic::{Diagnostic, Location, Sink, codes};

use super::cluster::Cluster;
use super::policy::uses_per_index;
use super::rayjob;
use super::service::{publishes, service_name};
use super::settings::{RoleSettings, setting_at};
use super::shape::Shape;

/// The maximum length of host names, DNS labels and label values.
const MAX_NAME_LENGTH: usize = 63;

/// The maximum number of simultaneous pods of an Indexed Job: `maxParallelismForIndexedJob` of
/// pkg/apis/batch/validation.
const MAX_PARALLELISM: u32 = 100_000;

/// The maximum number of simultaneous pods if an Indexed Job of more than 100,000 has `backoffLimitPerIndex`: same
/// file.
const MAX_PARALLELISM_PER_INDEX: u32 = 10_000;

/// Checks every derived name, label and count of a job.
pub(super) fn check(cluster: &Cluster<'_>, sink: &mut Sink) {
    let job = cluster.job;
    let at = Pointer::ROOT.key("name");
    let begins_with_letter = job.name.starts_with(|c: char| c.is_ascii_lowercase());
    if !begins_with_letter && !cluster.shape.is_lone_pod() {
        let what = match cluster.shape {
            Shape::IndexedJob | Shape::Volcano | Shape::MpiJob => "a Service".to_owned(),
            _ => format!("a {}", cluster.kind().name),
        };
        sink.push(
            Diagnostic::error(
                codes::KUBERNETES_NAME,
                format!("the name `{}` does not begin with a letter, and {what} of that name must", job.name),
            )
            .at(&at, "")
            .note(format!("write for example `name: job-{}`", job.name)),
        );
    }
    for role in &job.roles {
        check_role(cluster, role, sink);
    }
    for (key, value) in &cluster.settings.pod.labels {
        label(key, value, &Location::target(&setting_at(job, ["labels", key])), sink);
    }
}

fn check_role(cluster: &Cluster<'_>, role: &RolePlan, sink: &mut Sink) {
    let name = &cluster.pod_base(&role.name);
    let last = role.instances.saturating_sub(1);
    match cluster.shape {
        Shape::Pod | Shape::Job | Shape::SharePod => {}
        Shape::IndexedJob => {
            too_long(cluster, role, &format!("{name}-{last}"), "the host name of its last instance", sink);
        }
        Shape::Volcano | Shape::MpiJob | Shape::LeaderWorkerSet => {
            too_long(cluster, role, &format!("{name}-{last}"), "the name of its last pod", sink);
        }
        // KubeRay cuts its names to what Kubernetes takes, and makes them of the job's up to 47 characters.
        Shape::RayJob => rayjob::check_name(cluster, role, sink),
        // The JobSet webhook counts the pod's random ending too.
        Shape::JobSet | Shape::TrainJob => {
            let pod = format!("{name}-{last}-abcde");
            too_long(cluster, role, &pod, "the name of its last pod", sink);
        }
    }
    if publishes(role) {
        let name = service_name(cluster, role);
        too_long(cluster, role, &name, "the name of the Service that publishes its ports", sink);
    }
    let at_once = role.parallel.map_or(role.instances, |n| n.min(role.instances));
    let many = role.instances > MAX_PARALLELISM && uses_per_index(cluster.job, role);
    let max = if many { MAX_PARALLELISM_PER_INDEX } else { MAX_PARALLELISM };
    let by_job = matches!(cluster.shape, Shape::IndexedJob) || cluster.shape.is_jobset();
    if at_once > max && by_job {
        let at = role.at();
        let with = if many { " with retries of single instances" } else { "" };
        sink.push(
            Diagnostic::error(
                codes::KUBERNETES_SIZE,
                format!(
                    "role `{}` runs {at_once} instances at once; a Job{with} runs at most {max}",
                    role.name
                ),
            )
            .at(&at.key(if role.parallel.is_some() { "parallel" } else { "instances" }), "")
            .note(format!("write `parallel: {max}`"))
            .set(&at.key("parallel"), max),
        );
    }
    for (key, value) in &role.labels {
        label(key, value, &Location::value(&role.at().keys(["labels", key])), sink);
    }
    if let Some(own) = role.entry_in(&cluster.settings.roles) {
        for (key, value) in &own.pod.labels {
            let entry =
                if cluster.settings.roles.contains_key(&role.name) { &role.name } else { role.declared() };
            let at = setting_at(cluster.job, ["roles", entry, "labels", key]);
            label(key, value, &Location::target(&at), sink);
        }
    }
    let settings = RoleSettings::of(cluster.settings, role);
    let has_rdma = role.resources.rdma.is_some_and(|n| n > 0);
    let rdma =
        settings.pod.rdma.iter().filter(|_| has_rdma).map(|name| (settings.place("rdma"), "rdma", name));
    let devices = role.resources.devices.iter().filter_map(|path| {
        let name = settings.pod.devices.get(path).filter(|name| *name != "hostPath")?;
        Some((settings.place("devices").into_iter().chain([path.as_str()]).collect(), path.as_str(), name))
    });
    for (place, key, name) in rdma.chain(devices).filter(|(.., name)| !is_qualified(name)) {
        let at = setting_at(cluster.job, place);
        sink.push(
            Diagnostic::error(
                codes::KUBERNETES_SETTING,
                format!("`{key}: {name}` is not the name of a resource"),
            )
            .at_place(Location::target(&at), "")
            .note("write the name that the nodes advertise, such as `rdma/hca`"),
        );
    }
}

fn too_long(cluster: &Cluster<'_>, role: &RolePlan, name: &str, what: &str, sink: &mut Sink) {
    if name.len() <= MAX_NAME_LENGTH {
        return;
    }
    let over = name.len() - MAX_NAME_LENGTH;
    sink.push(
        Diagnostic::error(
            codes::KUBERNETES_NAME,
            format!(
                "role `{}` gets a name of {} characters on Kubernetes, where the limit is {MAX_NAME_LENGTH}: {what} would be `{name}`",
                role.name,
                name.len()
            ),
        )
        .at_key(&role.at(), "")
        .at(&Pointer::ROOT.key("name"), "is part of it")
        .note(format!(
            "shorten `{}` or `{}` by {over} character{}",
            cluster.job.name,
            role.name,
            if over == 1 { "" } else { "s" }
        )),
    );
}

fn label(key: &str, value: &str, at: &Location, sink: &mut Sink) {
    let problem = if !is_qualified_key(key) {
        format!("`{key}` is not the key of a label on Kubernetes")
    } else if !is_label_value(value) {
        format!("`{value}` is not the value of a label on Kubernetes")
    } else {
        return;
    };
    sink.push(
        Diagnostic::error(codes::KUBERNETES_LABEL, problem)
            .at_place(at.clone(), "")
            .note("a key and a value are at most 63 letters, digits, `-`, `_`, `.`, beginning and ending with a letter or digit; a key may have a domain and `/` before it")
            .note("put free text into `description`, or into `annotations` of the target"),
    );
}

/// A label's value: empty, or like a key without a prefix.
fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_name(text)
}

/// A label's key: a name, with a domain before it if wanted.
fn is_qualified_key(text: &str) -> bool {
    match text.split_once('/') {
        Some((domain, name)) => is_domain(domain) && is_name(name),
        None => is_name(text),
    }
}

/// An extended resource: always with a domain.
fn is_qualified(text: &str) -> bool {
    text.contains('/') && is_qualified_key(text)
}

fn is_name(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    text.len() <= MAX_NAME_LENGTH
        && text.chars().all(inner)
        && edge(text.chars().next())
        && edge(text.chars().last())
}

fn is_domain(text: &str) -> bool {
    let part = |part: &str| {
        !part.is_empty()
            && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(part)
}
