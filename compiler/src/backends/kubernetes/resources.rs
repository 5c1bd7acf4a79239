//! A container's resources: limits, and for what can be overcommitted equal requests.

use std::collections::BTreeMap;

use jobc_schema::plan::RolePlan;
use jobc_schema::quantity::Cpus;
use k8s_openapi::api::core::v1::ResourceRequirements;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::cluster::Cluster;
use super::gpu;
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
    cluster: &Cluster<'_>,
    role: &RolePlan,
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
    let mut extended = |name: String, count: u32, key: &str| {
        origins.spec(["containers", "0", "resources", "limits", &name], &at.key(key));
        limits.insert(name, Quantity(count.to_string()));
    };
    if let Some(gpu) = gpu::wanted(role)
        && let Ok(provider) = gpu::provider(cluster.job, gpu.vendor)
    {
        extended(provider.resource(gpu), gpu.count, "gpu");
    }
    if let (Some(count @ 1..), Some(name)) = (asked.rdma, rdma) {
        extended(name.to_owned(), count, "rdma");
    }
    if limits.is_empty() {
        return None;
    }
    let requests = (!requests.is_empty()).then_some(requests);
    Some(ResourceRequirements { limits: Some(limits), requests, claims: None })
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
