//! Devices that are near each other.
//!
//! The distance of two cards is a cost whose steps grow faster than any number of nearer pairs can add up to, so that
//! one path through the processors costs more than all links of a host.

use crate::inventory::{DeviceId, Inventory, LinkType};

/// A device that may be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// The device.
    pub(super) device: DeviceId,
    /// The job's own slot on it, where a role that is never there at the same time has it.
    pub(super) slot: Option<usize>,
    /// Programs outside of jobs use it.
    pub(super) busy: bool,
}

/// Up to this number of sets all are compared; beyond it, sets are grown from each device.
const MAX_SETS_COMPARED: u64 = 2000;

/// The cost of a choice, most significant part first: devices that the job has not had, devices in use, distances among
/// those chosen, links that are broken to those left.
type Cost = (usize, usize, u64, u64);

/// Chooses this many; `None` if there are too few.
pub(super) fn choose(from: &[Candidate], count: usize, inventory: &Inventory) -> Option<Vec<Candidate>> {
    if count > from.len() {
        return None;
    }
    let distances = Distances::of(from, inventory);
    let sets: Box<dyn Iterator<Item = Vec<usize>>> = if combinations(from.len(), count) <= MAX_SETS_COMPARED {
        Box::new(subsets(from.len(), count))
    } else {
        Box::new((0..from.len()).map(|seed| grow_set(seed, from, count, &distances)))
    };
    // Among equal ones the first: sets come in the order of their devices.
    let best = sets.min_by_key(|set| cost(set, from, &distances))?;
    Some(best.into_iter().map(|place| from[place].clone()).collect())
}

/// The distances between all candidates.
struct Distances(Vec<Vec<u64>>);

impl Distances {
    fn of(from: &[Candidate], inventory: &Inventory) -> Self {
        let row = |a: &Candidate| from.iter().map(|b| distance(a.device, b.device, inventory)).collect();
        Self(from.iter().map(row).collect())
    }

    fn sum(&self, of: usize, to: &[usize]) -> u64 {
        to.iter().map(|&other| self.0[of][other]).sum()
    }
}

/// The distance that two cards have of which nothing is known; nearer ones have something in common.
const UNKNOWN_DISTANCE: u64 = 100_000_000;

/// The distance between two devices.
fn distance(a: DeviceId, b: DeviceId, inventory: &Inventory) -> u64 {
    if (a.vendor, a.gpu) == (b.vendor, b.gpu) {
        return 0;
    }
    let (Some(one), Some(other)) = (inventory.gpu(a), inventory.gpu(b)) else { return UNKNOWN_DISTANCE };
    let link = one.links.iter().find(|link| link.to == other.index).map(|link| link.by);
    match link {
        // More links are nearer; none has more than eighteen.
        Some(LinkType::Nvlink(links)) => u64::from(20_u32.saturating_sub(links).max(1)),
        Some(LinkType::Switch) => 2_000,
        Some(LinkType::Switches) => 20_000,
        Some(LinkType::Bridge) => 200_000,
        Some(LinkType::Node) => 2_000_000,
        None if one.numa_node.is_some() && one.numa_node == other.numa_node => 2_000_000,
        Some(LinkType::System) | None => 20_000_000,
    }
}

fn cost(set: &[usize], from: &[Candidate], distances: &Distances) -> Cost {
    let left: Vec<usize> = (0..from.len()).filter(|place| !set.contains(place)).collect();
    let inside = set.iter().map(|&place| distances.sum(place, set)).sum::<u64>() / 2;
    let broken = set.iter().flat_map(|&place| left.iter().map(move |&other| (place, other)));
    let broken =
        broken.map(|(place, other)| UNKNOWN_DISTANCE - distances.0[place][other].min(UNKNOWN_DISTANCE)).sum();
    let new = set.iter().filter(|&&place| from[place].slot.is_none()).count();
    let busy = set.iter().filter(|&&place| from[place].busy).count();
    (new, busy, inside, broken)
}

/// A set that starts with one device and adds the nearest ones, one by one.
fn grow_set(seed: usize, from: &[Candidate], count: usize, distances: &Distances) -> Vec<usize> {
    let mut set: Vec<usize> = if count == 0 { vec![] } else { vec![seed] };
    while set.len() < count {
        let free = (0..from.len()).filter(|place| !set.contains(place));
        let next = free.min_by_key(|&place| {
            let Candidate { slot, busy, .. } = from[place];
            (slot.is_none(), busy, distances.sum(place, &set))
        });
        set.extend(next);
    }
    set.sort_unstable();
    set
}

/// All sets of `count` of `total` places, in order.
fn subsets(total: usize, count: usize) -> impl Iterator<Item = Vec<usize>> {
    let mut next = (count <= total).then(|| (0..count).collect::<Vec<usize>>());
    std::iter::from_fn(move || {
        let set = next.take()?;
        // The last place that can go on does, and those behind it follow.
        next = (0..count).rev().find(|&place| set[place] < total - count + place).map(|place| {
            let mut after = set.clone();
            let first = set[place] + 1;
            (place..count).for_each(|behind| after[behind] = first + behind - place);
            after
        });
        Some(set)
    })
}

/// How many sets of `count` of `total` there are.
fn combinations(total: usize, count: usize) -> u64 {
    let mut all: u64 = 1;
    for step in 0..count.min(total - count) {
        all = all.saturating_mul((total - step) as u64) / (step as u64 + 1);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_sets_in_order() {
        let sets: Vec<Vec<usize>> = subsets(4, 2).collect();
        assert_eq!(sets, [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]);
        assert_eq!(subsets(3, 0).collect::<Vec<_>>(), [[0; 0]]);
        assert_eq!(subsets(2, 3).count(), 0);
        for (total, count) in [(8, 4), (12, 6), (5, 5), (7, 0)] {
            assert_eq!(subsets(total, count).count() as u64, combinations(total, count));
        }
    }
}
