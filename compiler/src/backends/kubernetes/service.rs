//! Services: names for pods, and ports published.

use std::collections::BTreeMap;

use jobc_schema::plan::RolePlan;
use jobc_schema::resources::Publish;
use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::cluster::Cluster;
use super::metadata;
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
            selector: Some(selector(&cluster.job.name)),
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
            selector: Some(selector(&cluster.job_name(&role.name))),
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
            let service = ServicePort {
                name: Some(name),
                port: number,
                target_port: Some(IntOrString::Int(number)),
                ..ServicePort::default()
            };
            found.push((port.label.clone(), service));
        }
    }
    found
}

fn selector(job: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(JOB_NAME.to_owned(), job.to_owned())])
}

fn object(cluster: &Cluster<'_>, name: &str, spec: ServiceSpec, origins: Origins) -> Option<Object> {
    let service = Service { metadata: metadata::object(cluster, name), spec: Some(spec), status: None };
    let value = serde_json::to_value(service).ok()?;
    Some(Object { kind: "Service", name: name.to_owned(), value, origins: origins.into_list() })
}
