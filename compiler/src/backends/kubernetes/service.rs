//! Services: names for pods, and ports published.

use std::collections::BTreeMap;

use jobc_schema::plan::RolePlan;
use jobc_schema::resources::Publish;
use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};

use super::cluster::Cluster;
use super::metadata::{self, NAME, ROLE};
use super::naming;
use super::object::Object;
use super::origins::Origins;
use super::shape::Shape;

/// The label that the Job controller puts on a Job's pods.
const JOB_NAME: &str = "batch.kubernetes.io/job-name";

/// The Services of a job: a headless one for the pods of an Indexed Job, as JobSet makes its own, and one for each
/// role with published ports.
pub(super) fn services(cluster: &Cluster<'_>) -> Vec<Object> {
    let mut found = vec![];
    if cluster.shape == Shape::IndexedJob {
        let spec = ServiceSpec {
            cluster_ip: Some("None".to_owned()),
            // Pods find each other before they are ready, for a rendezvous is what makes them ready.
            publish_not_ready_addresses: Some(true),
            selector: Some(labels([(JOB_NAME, &cluster.job.name)])),
            ..ServiceSpec::default()
        };
        found.extend(object(cluster, &cluster.job.name, spec, Origins::default()));
    }
    for role in &cluster.job.roles {
        let ports = published(role);
        if ports.is_empty() {
            continue;
        }
        let mut origins = Origins::default();
        for (i, (label, _)) in ports.iter().enumerate() {
            let at = role.at().keys(["resources", "ports", label]);
            origins.spec(["spec", "ports", &i.to_string()], &at);
        }
        let spec = ServiceSpec {
            selector: Some(of_role(cluster, role)),
            ports: Some(ports.into_iter().map(|(_, port)| port).collect()),
            ..ServiceSpec::default()
        };
        found.extend(object(cluster, &service_name(cluster, role), spec, origins));
    }
    found
}

/// The name of the Service that publishes a role's ports.
pub(super) fn service_name(cluster: &Cluster<'_>, role: &RolePlan) -> String {
    format!("{}-{}", cluster.job.name, role.name)
}

/// Whether a role has ports that a Service publishes.
pub(super) fn publishes(role: &RolePlan) -> bool {
    role.ports.iter().any(|port| port.publish == Publish::Service)
}

fn published(role: &RolePlan) -> Vec<(String, ServicePort)> {
    let mut found = vec![];
    for port in role.ports.iter().filter(|port| port.publish == Publish::Service) {
        for i in 0..port.count.max(1) {
            let Ok(number) = i32::try_from(u32::from(port.number) + i) else { continue };
            let name = if port.count > 1 { format!("{}-{i}", port.label) } else { port.label.clone() };
            let service = ServicePort { name: Some(name), port: number, ..ServicePort::default() };
            found.push((port.label.clone(), service));
        }
    }
    found
}

/// The labels that only the pods of a role have.
fn of_role(cluster: &Cluster<'_>, role: &RolePlan) -> BTreeMap<String, String> {
    let job = cluster.job.name.as_str();
    match cluster.shape {
        Shape::Pod => labels([(NAME, job), (ROLE, &role.name)]),
        Shape::Volcano => labels([(naming::VOLCANO_JOB, job), (naming::VOLCANO_TASK, &role.name)]),
        Shape::MpiJob => labels([(naming::MPI_JOB, job), (naming::MPI_ROLE, naming::mpi_part(role))]),
        Shape::RayJob => labels([(naming::RAY_JOB, job), (ROLE, &role.name)]),
        Shape::LeaderWorkerSet => labels([(naming::LWS_NAME, job), (ROLE, &role.name)]),
        Shape::Job | Shape::IndexedJob | Shape::JobSet | Shape::TrainJob | Shape::SharePod => {
            labels([(JOB_NAME, &cluster.pod_base(&role.name))])
        }
    }
}

fn labels<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn object(cluster: &Cluster<'_>, name: &str, spec: ServiceSpec, origins: Origins) -> Option<Object> {
    let service = Service { metadata: metadata::object(cluster, name), spec: Some(spec), status: None };
    let value = serde_json::to_value(service).ok()?;
    Some(Object { kind: "Service", name: name.to_owned(), value, origins: origins.into_list() })
}
