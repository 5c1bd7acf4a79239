//! The chips of a TPU slice against those that a role requests.
//!
//! A node selector with the topology of a slice, such as `4x4`, gives each pod a node of it. All chips of a slice belong to
//! one job, whose processes wait for each other (GKE, "About TPUs": chips of the topology = chips of a pod x pods).

use crate::diagnostic::{Diagnostic, Location, Sink, codes};

use super::cluster::Cluster;
use super::settings::{RoleSettings, setting_at};

/// The label of nodes with the topology of their slice.
const TOPOLOGY: &str = "cloud.google.com/gke-tpu-topology";

/// Reports a role whose instances do not fill whole slices.
pub(super) fn check(cluster: &Cluster<'_>, sink: &mut Sink) {
    for role in &cluster.job.roles {
        let settings = RoleSettings::of(cluster.settings, role);
        let Some(gpu) = role.gpus().filter(|gpu| gpu.vendor == jobc_schema::gpu::Vendor::Google) else {
            continue;
        };
        let Some(topology) = settings.pod.node_selector.get(TOPOLOGY) else { continue };
        let Some(chips) = chips(topology) else { continue };
        let requested = gpu.count.saturating_mul(role.instances);
        if requested > 0 && requested.is_multiple_of(chips) {
            continue;
        }
        let message = format!(
            "role `{}` requests {requested} TPU chips, {} for each of {} instances, and a slice of topology `{topology}` has {chips}",
            role.name, gpu.count, role.instances
        );
        let mut place = settings.place("node_selector");
        place.push(TOPOLOGY);
        let mut found = Diagnostic::error(codes::TPU_TOPOLOGY, message)
            .at(&role.at().keys(["resources", "gpu"]), "")
            .at_place(Location::target(&setting_at(cluster.job, place)), "");
        if gpu.count > 0 && chips.is_multiple_of(gpu.count) {
            let instances = chips / gpu.count;
            found = found
                .note(format!(
                    "write `instances: {instances}`, or the topology of a slice with {requested} chips"
                ))
                .set(&role.at().key("instances"), instances);
        } else {
            found = found.note(
                "write the chips of a node as `gpu.count`, and as many instances as the slice has nodes",
            );
        }
        sink.push(found);
    }
}

/// The product of `AxB` or `AxBxC`.
fn chips(topology: &str) -> Option<u32> {
    let mut product = 1_u32;
    for side in topology.split('x') {
        product = product.checked_mul(side.parse().ok().filter(|side| *side > 0)?)?;
    }
    Some(product)
}

#[cfg(test)]
mod tests {
    use super::chips;

    #[test]
    fn a_topology_is_a_product() {
        assert_eq!(chips("4x4"), Some(16));
        assert_eq!(chips("2x2x4"), Some(16));
        assert_eq!(chips("auto"), None);
    }
}
