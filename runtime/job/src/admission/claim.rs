//! A job's resources on the host: the peak at any time, not the sum of what runs one after another.
//!
//! A role that needs all of another's successes begins when that one has ended, so the two never run together, nor does
//! anything that waits for the later one run next to the earlier one. The most at any time is then the heaviest set of
//! roles of which no two are so ordered: an antichain. By Dilworth's theorem, with weights, it is what is left of the
//! sum after a largest flow along that order, which is exact and cheap for the thousand roles that a job can have here.

use std::collections::{BTreeMap, VecDeque};

use jobc_schema::job::Network;
use jobc_schema::plan::order::RoleOrder;
use jobc_schema::plan::{JobPlan, RolePlan};

use crate::record::Claim;

/// What a job takes at most at any time. Roles that ask for no limit take nothing that is counted.
pub fn of(plan: &JobPlan) -> Claim {
    let roles: Vec<Claim> = plan.roles.iter().map(of_role).collect();
    let order = RoleOrder::of(plan);
    let max = |measure: fn(&Claim) -> u64| {
        let mut weights: Vec<u64> = roles.iter().map(measure).collect();
        limit_combinations(plan, &mut weights);
        Weights(&order).heaviest(&weights)
    };
    Claim {
        cpu_millis: max(|claim| claim.cpu_millis),
        memory_bytes: max(|claim| claim.memory_bytes),
        gpus: max(|claim| claim.gpus),
        disk_bytes: max(|claim| claim.disk_bytes),
        ports: ports(plan),
        ..Claim::default()
    }
}

/// Counts only as many combinations of a role's matrix as run at once, the heaviest: all of them have the same place in
/// the order, so the first stands for all.
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
        memory_bytes: all(resources.memory_bytes),
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

/// The weights of roles, of which some never run at the same time.
struct Weights<'a>(&'a RoleOrder);

impl Weights<'_> {
    /// The largest sum of weights of roles of which no two are apart.
    fn heaviest(&self, weights: &[u64]) -> u64 {
        // The sum of all must be a number: weights beyond that are not of this world.
        let max = u64::MAX / (weights.len() as u64 + 1);
        let weights: Vec<u64> = weights.iter().map(|weight| *weight.min(&max)).collect();
        weights.iter().sum::<u64>() - self.flow(&weights)
    }

    /// The largest flow from each role's weight to the weights of those after it, along shortest ways (Edmonds and
    /// Karp).
    fn flow(&self, weights: &[u64]) -> u64 {
        let (mut supply, mut demand) = (weights.to_vec(), weights.to_vec());
        // What a role took of each sender.
        let mut taken: BTreeMap<(usize, usize), u64> = BTreeMap::new();
        let mut arrived = 0;
        while let Some(way) = self.augmenting_path(&supply, &demand, &taken) {
            let (first, last) = (way[0].0, way[way.len() - 1].1);
            let given_back = way.windows(2).filter_map(|pair| taken.get(&(pair[0].1, pair[1].0)).copied());
            let amount = given_back.chain([supply[first], demand[last]]).min().unwrap_or_default();
            supply[first] -= amount;
            demand[last] -= amount;
            for (number, &(from, to)) in way.iter().enumerate() {
                *taken.entry((to, from)).or_default() += amount;
                if let Some((next, _)) = way.get(number + 1)
                    && let Some(taken) = taken.get_mut(&(to, *next))
                {
                    *taken -= amount;
                }
            }
            arrived += amount;
        }
        arrived
    }

    /// A shortest path from a role with supply to one with demand, as pairs of sender and receiver.
    ///
    /// From one pair to the next, the taker gives back what it had of the next sender, which then sends it elsewhere.
    fn augmenting_path(
        &self,
        supply: &[u64],
        demand: &[u64],
        taken: &BTreeMap<(usize, usize), u64>,
    ) -> Option<Vec<(usize, usize)>> {
        // The sender from which a receiver was reached, and the receiver from which a sender was reached.
        let mut takers: Vec<Option<usize>> = vec![None; supply.len()];
        let mut senders: Vec<Option<usize>> = vec![None; supply.len()];
        let mut open: VecDeque<usize> = (0..supply.len()).filter(|&role| supply[role] > 0).collect();
        while let Some(from) = open.pop_front() {
            for &to in &self.0.after[from] {
                if takers[to].is_some() {
                    continue;
                }
                takers[to] = Some(from);
                if demand[to] > 0 {
                    return Some(trace_path(to, &takers, &senders));
                }
                for (&(_, sender), _) in
                    taken.range((to, 0)..=(to, usize::MAX)).filter(|(_, amount)| **amount > 0)
                {
                    if supply[sender] == 0 && senders[sender].is_none() {
                        senders[sender] = Some(to);
                        open.push_back(sender);
                    }
                }
            }
        }
        None
    }
}

/// The way that led to a taker.
fn trace_path(last: usize, takers: &[Option<usize>], senders: &[Option<usize>]) -> Vec<(usize, usize)> {
    let mut way = Vec::new();
    let mut taker = Some(last);
    while let Some(to) = taker {
        let Some(from) = takers[to] else { break };
        way.push((from, to));
        taker = senders[from];
    }
    way.reverse();
    way
}

#[cfg(test)]
mod tests;
