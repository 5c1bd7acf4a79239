//! The peak usage of roles at any time, which counts roles that run one after another only once.
//!
//! A role that needs all instances of another to succeed begins after the other has ended, so the two never run
//! together, and neither do roles that wait for the later one. The peak is then the heaviest set of roles of which no
//! two are ordered this way: an antichain. By the weighted form of Dilworth's theorem, it is the sum of the weights
//! minus the maximum flow along that order, which is exact and cheap for a thousand roles.

use std::collections::{BTreeMap, VecDeque};

use super::RoleOrder;

impl RoleOrder {
    /// The largest sum of weights, one for each role of the plan, of roles that can run at the same time.
    pub fn heaviest(&self, weights: &[u64]) -> u64 {
        // The sum of all weights must not overflow; real weights are far smaller.
        let max = u64::MAX / (weights.len() as u64 + 1);
        let weights: Vec<u64> = weights.iter().map(|weight| *weight.min(&max)).collect();
        weights.iter().sum::<u64>() - self.flow(&weights)
    }

    /// The maximum flow from each role's weight to the weights of the roles after it, along shortest paths (Edmonds and
    /// Karp).
    fn flow(&self, weights: &[u64]) -> u64 {
        let (mut supply, mut demand) = (weights.to_vec(), weights.to_vec());
        // How much a role received from each sender.
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
    /// From one pair to the next, the receiver gives back what it had from the next sender, which then sends it
    /// elsewhere.
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
            for &to in &self.after[from] {
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

/// The path that led to a receiver.
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
