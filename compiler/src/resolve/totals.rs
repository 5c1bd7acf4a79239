//! The total resources of all instances.

use jobc_schema::plan::{RolePlan, Totals};

/// Adds up the resources of all roles; those that a role leaves to the target are not counted.
pub(super) fn add_up(roles: &[RolePlan]) -> Totals {
    let mut totals = Totals::default();
    for role in roles {
        let instances = u64::from(role.instances);
        let add = |sum: &mut u64, each: u64| *sum = sum.saturating_add(each.saturating_mul(instances));
        totals.instances += instances;
        add(&mut totals.cpu_millis, role.resources.cpu_millis.unwrap_or(0));
        add(&mut totals.memory_bytes, role.resources.memory_bytes.unwrap_or(0));
        if let Some(gpu) = &role.resources.gpu {
            let sum = if gpu.share.is_some() { &mut totals.gpu_slices } else { &mut totals.gpus };
            add(sum, u64::from(gpu.count));
        }
    }
    totals
}
