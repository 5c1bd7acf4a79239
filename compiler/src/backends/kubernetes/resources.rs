//! A container's resources: limits, and for what can be overcommitted equal requests.

use std::collections::BTreeMap;

use jobc_schema::plan::RolePlan;
use jobc_schema::quantity::Cpus;
use k8s_openapi::api::core::v1::{ResourceClaim, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::gpu::{self, Given};
use super::origins::Origins;

/// A number of bytes in the largest binary unit that is exact: `32Gi`, `1536Mi`, `1000`.
pub(super) fn bytes(bytes: u64) -> Quantity {
    for (shift, unit) in [(40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki")] {
        if bytes != 0 && bytes.trailing_zeros() >= shift {
            return Quantity(format!("{}{unit}", bytes >> shift));
        }
    }
    Quantity(bytes.to_string())
}

/// The resources of a role's container; nothing where the role leaves all to the cluster.
pub(super) fn resources(
    role: &RolePlan,
    given: Option<&Given>,
    rdma: Option<&str>,
    origins: &mut Origins,
) -> Option<ResourceRequirements> {
    let asked = &role.resources;
    let at = role.at().key("resources");
    let mut requests = BTreeMap::new();
    let mut native = |name: String, quantity: Quantity, key: &str| {
        for list in ["limits", "requests"] {
            origins.spec(["containers", "0", "resources", list, &name], &at.key(key));
        }
        requests.insert(name, quantity);
    };
    if let Some(millis) = asked.cpu_millis {
        native("cpu".to_owned(), Quantity(Cpus { millis }.to_string()), "cpu");
    }
    if let Some(amount) = asked.memory_bytes {
        native("memory".to_owned(), bytes(amount), "memory");
    }
    if let Some(amount) = asked.disk_bytes {
        native("ephemeral-storage".to_owned(), bytes(amount), "disk");
    }
    for (size, amount) in &asked.hugepages_bytes {
        let size = size.trim_end_matches('B');
        native(format!("hugepages-{size}"), bytes(*amount), "hugepages");
    }
    let mut limits = requests.clone();
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
    if let (Some(count @ 1..), Some(name)) = (asked.rdma, rdma) {
        extended(name, count.to_string(), "rdma", false);
    }
    let claimed = given.is_some_and(|given| given.claim);
    let claims = claimed.then(|| vec![ResourceClaim { name: gpu::claims::NAME.to_owned(), request: None }]);
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

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn amounts_are_exact() {
        let check = |n: u64, text: &str| assert_eq!(bytes(n).0, text);
        check(32 << 30, "32Gi");
        check(3 << 29, "1536Mi");
        check(500_000_000, "500000000");
        check(2 << 40, "2Ti");
        check(0, "0");
    }
}
