//! A job's resources on the host: the peak at any time, not the sum of what runs one after another.

use std::collections::BTreeMap;

use jobc_schema::job::Network;
use jobc_schema::plan::order::RoleOrder;
use jobc_schema::plan::{JobPlan, RolePlan};

use crate::record::Claim;

/// A job's peak use of resources. Roles without a limit claim nothing.
pub fn of(plan: &JobPlan) -> Claim {
    let roles: Vec<Claim> = plan.roles.iter().map(of_role).collect();
    let order = RoleOrder::of(plan);
    let max = |measure: fn(&Claim) -> u64| {
        let mut weights: Vec<u64> = roles.iter().map(measure).collect();
        limit_combinations(plan, &mut weights);
        order.heaviest(&weights)
    };
    Claim {
        cpu_millis: max(|claim| claim.cpu_millis),
        memory_bytes: max(|claim| claim.memory_bytes),
        gpus: max(|claim| claim.gpus),
        disk_bytes: max(|claim| claim.disk_bytes),
        ports: ports(plan),
        timeout_seconds: plan.timeout_seconds,
        priority: plan.priority.as_ref().and_then(|priority| priority.entry.value).unwrap_or_default(),
        ..Claim::default()
    }
}

/// Counts only the heaviest combinations of a role's matrix that run at once. All have the same place in the order, so
/// the first represents them.
fn limit_combinations(plan: &JobPlan, weights: &mut [u64]) {
    let mut of_role: BTreeMap<&str, (usize, Vec<usize>)> = BTreeMap::new();
    for (number, role) in plan.roles.iter().enumerate() {
        if let Some((matrix, max)) =
            role.matrix.as_ref().and_then(|matrix| Some((matrix, matrix.max_parallel?)))
        {
            of_role.entry(&matrix.role).or_insert_with(|| (max as usize, vec![])).1.push(number);
        }
    }
    for (max, numbers) in of_role.into_values() {
        let mut heaviest: Vec<u64> =
            numbers.iter().map(|&number| std::mem::take(&mut weights[number])).collect();
        heaviest.sort_unstable_by(|a, b| b.cmp(a));
        weights[numbers[0]] = heaviest.iter().take(max).fold(0, |sum, weight| sum.saturating_add(*weight));
    }
}

/// The resources of a role's concurrent instances; slices of GPUs are not counted as whole GPUs.
pub fn of_role(role: &RolePlan) -> Claim {
    let at_once = u64::from(role.parallel.unwrap_or(role.instances).min(role.instances));
    let resources = &role.resources;
    let whole = resources.gpu.as_ref().filter(|gpu| gpu.share.is_none()).map(|gpu| u64::from(gpu.count));
    let all = |each: Option<u64>| each.unwrap_or_default().saturating_mul(at_once);
    Claim {
        cpu_millis: all(resources.cpu_millis),
        // The most that an attempt can get: the rest of the host may be full when it needs it.
        memory_bytes: all(role.retry.memory_bytes.last().copied().or(resources.memory_bytes)),
        gpus: all(whole),
        disk_bytes: all(resources.disk_bytes),
        ..Claim::default()
    }
}

/// The ports of the host's own network that the job's tasks listen on.
fn ports(plan: &JobPlan) -> Vec<u16> {
    if matches!(plan.network, Network::Job | Network::None) {
        return Vec::new();
    }
    let mut ports: Vec<u16> = plan
        .roles
        .iter()
        .flat_map(|role| role.ports.iter().flat_map(|port| super::ports::numbers_of(port, role.instances)))
        .collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

#[cfg(test)]
mod tests;
