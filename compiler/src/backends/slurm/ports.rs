//! Port numbers, which a Slurm job derives from its ID.
//!
//! Tasks share the network of their nodes with other jobs. Ports that the user leaves open come from a range below
//! those that Linux gives out itself, at a place that follows from the job's number, so that jobs on one node differ.

use std::collections::BTreeMap;

use jobc_schema::plan::{JobPlan, PortPlan};

/// The first port, and how many there are: up to where Linux begins to give out ports (`ip_local_port_range`).
pub(super) const FIRST: u32 = 10_240;
/// How many ports there are.
pub(super) const COUNT: u32 = 22_528;

/// Where the ports of a job are, counted from its first one.
pub(super) struct Ports {
    offsets: BTreeMap<(String, String), u32>,
    /// How many ports the job takes; at least 1.
    pub total: u32,
}

impl Ports {
    /// The ports of a job.
    pub(super) fn of(job: &JobPlan) -> Self {
        let (mut offsets, mut next) = (BTreeMap::new(), 0_u32);
        for role in &job.roles {
            for port in role.ports.iter().filter(|port| is_open(port)) {
                offsets.insert((role.name.clone(), port.label.clone()), next);
                next = next.saturating_add(port.count.saturating_mul(role.instances));
            }
        }
        Self { offsets, total: next.clamp(1, COUNT) }
    }

    /// Where the ports of a role's first instance begin; none for a number that the user fixed.
    pub(super) fn offset(&self, role: &str, label: &str) -> Option<u32> {
        self.offsets.get(&(role.to_owned(), label.to_owned())).copied()
    }
}

/// Whether the number is for the target to choose.
pub(super) fn is_open(port: &PortPlan) -> bool {
    port.auto || port.shared_base.is_some()
}
