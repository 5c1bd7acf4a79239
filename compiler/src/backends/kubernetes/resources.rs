//! A container's resources: limits alone, for the API server makes equal requests of them.

use std::collections::BTreeMap;

use jobc_schema::Pointer;
use jobc_schema::plan::{JobPlan, RolePlan};
use jobc_schema::quantity::Cpus;
use jobc_schema::target::PodSettings;
use k8s_openapi::api::core::v1::{ResourceClaim, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::gpu::PodRequest;
use super::origins::Origins;
use super::quantity::bytes;
use super::{claims, devices};

/// The resources of a role's container; nothing where the role leaves all to the cluster.
pub(super) fn resources(
    job: &JobPlan,
    role: &RolePlan,
    given: Option<&PodRequest>,
    pod: &PodSettings,
    origins: &mut Origins,
) -> Option<ResourceRequirements> {
    let request = &role.resources;
    let at = role.at().key("resources");
    let (mut limits, mut requests) = (BTreeMap::new(), BTreeMap::new());
    let mut native = |name: String, quantity: Quantity, key: &str| {
        origins.spec(["containers", "0", "resources", "limits", &name], &at.key(key));
        limits.insert(name, quantity);
    };
    if let Some(millis) = request.cpu_millis {
        native("cpu".to_owned(), Quantity(Cpus { millis }.to_string()), "cpu");
    }
    if let Some(amount) = request.memory_bytes {
        native("memory".to_owned(), bytes(amount), "memory");
    }
    for (size, amount) in &request.hugepages_bytes {
        let size = size.trim_end_matches('B');
        native(format!("hugepages-{size}"), bytes(*amount), "hugepages");
    }
    if let Some(amount) = job.disk_bytes(role) {
        let name = "ephemeral-storage";
        let of_volume = || job.scratch(role).next().map(|(volume, _)| volume);
        let from = match of_volume().filter(|_| request.disk_bytes.is_none()) {
            Some(volume) => Pointer::ROOT.keys(["data", volume, "source"]),
            None => at.key("disk"),
        };
        origins.spec(["containers", "0", "resources", "limits", name], &from);
        limits.insert(name.to_owned(), bytes(amount));
    }
    let mut extended = |name: &str, amount: String, key: &str, requested: bool| {
        origins.spec(["containers", "0", "resources", "limits", name], &at.key(key));
        if requested {
            origins.spec(["containers", "0", "resources", "requests", name], &at.key(key));
            requests.insert(name.to_owned(), Quantity(amount.clone()));
        }
        limits.insert(name.to_owned(), Quantity(amount));
    };
    for (name, amount, requested) in given.into_iter().flat_map(|given| &given.resources) {
        extended(name, amount.clone(), "gpu", *requested);
    }
    if let (Some(count @ 1..), Some(name)) = (request.rdma, &pod.rdma) {
        extended(name, count.to_string(), "rdma", false);
    }
    for name in request.devices.iter().filter_map(|path| devices::resource(pod, path)) {
        extended(name, "1".to_owned(), "devices", false);
    }
    let claimed = given.is_some_and(|given| given.claim);
    let claims = claimed.then(|| vec![ResourceClaim { name: claims::NAME.to_owned(), request: None }]);
    if claimed {
        origins.spec(["containers", "0", "resources", "claims"], &at.key("gpu"));
    }
    if limits.is_empty() && claims.is_none() {
        return None;
    }
    let limits = (!limits.is_empty()).then_some(limits);
    let requests = (!requests.is_empty()).then_some(requests);
    Some(ResourceRequirements { limits, requests, claims })
}
