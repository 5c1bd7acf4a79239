//! The peak of what roles use at any time, not the sum of what runs one after another.
//!
//! A role that needs all of another's successes begins when that one has ended, so the two never run together, nor does
//! anything that waits for the later one run next to the earlier one. The most at any time is then the heaviest set of
//! roles of which no two are so ordered: an antichain. By Dilworth's theorem, with weights, it is what is left of the
//! sum after a largest flow along that order, which is exact and cheap for a thousand roles.

use std::collections::{BTreeMap, VecDeque};

use super::RoleOrder;

impl RoleOrder {
    /// The largest sum of weights, one for each role of the plan, of roles that can be there at the same time.
    pub fn heaviest(&self, weights: &[u64]) -> u64 {
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
