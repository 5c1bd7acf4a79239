//! The peak usage of roles at any time, which counts roles that run one after another only once.
//!
//! A role that needs all instances of another to succeed begins after the other has ended, so the two never run
//! together, and neither do roles that wait for the later one. The peak is then the heaviest set of roles of which no
//! two are ordered this way: an antichain. By the weighted form of Dilworth's theorem, it is the sum of the weights
//! minus the maximum flow from each role's weight to the weights of the roles after it. The flow goes along the needs
//! themselves (Dinic's algorithm): all pairs of ordered roles would be too many for a chain of many thousands.

use std::collections::VecDeque;

use super::RoleOrder;

impl RoleOrder {
    /// The largest sum of weights, one for each role of the plan, of roles that can run at the same time.
    pub fn heaviest(&self, weights: &[u64]) -> u64 {
        // The sum of all weights must not overflow; real weights are far smaller.
        let max = u64::MAX / (weights.len() as u64 + 1);
        let weights: Vec<u64> = weights.iter().map(|weight| *weight.min(&max)).collect();
        let number = weights.len();
        let (source, sink) = (2 * number, 2 * number + 1);
        let mut flow = Flow { edges: vec![], from: vec![vec![]; 2 * number + 2] };
        // A role is two nodes: its end, to which its weight flows, and its beginning, from which it flows away.
        for (role, &weight) in weights.iter().enumerate() {
            flow.connect(source, role, weight);
            flow.connect(number + role, sink, weight);
            for (others, node) in [(&self.ended[role], role), (&self.later[role], number + role)] {
                for other in others {
                    flow.connect(node, number + other, u64::MAX);
                }
            }
        }
        weights.iter().sum::<u64>() - flow.maximum(source, sink)
    }
}

/// A network: each edge is followed by its reverse, which has what can be given back.
struct Flow {
    edges: Vec<Edge>,
    /// The edges from each node.
    from: Vec<Vec<usize>>,
}

struct Edge {
    to: usize,
    free: u64,
}

impl Flow {
    fn connect(&mut self, from: usize, to: usize, capacity: u64) {
        for (from, to, free) in [(from, to, capacity), (to, from, 0)] {
            self.from[from].push(self.edges.len());
            self.edges.push(Edge { to, free });
        }
    }

    fn maximum(&mut self, source: usize, sink: usize) -> u64 {
        let mut arrived = 0;
        loop {
            let levels = self.levels(source);
            if levels[sink] == usize::MAX {
                return arrived;
            }
            arrived += self.block(source, sink, &levels);
        }
    }

    /// The distance of each node from the source along edges that are not full.
    fn levels(&self, source: usize) -> Vec<usize> {
        let mut levels = vec![usize::MAX; self.from.len()];
        levels[source] = 0;
        let mut open = VecDeque::from([source]);
        while let Some(node) = open.pop_front() {
            for &edge in &self.from[node] {
                let Edge { to, free } = self.edges[edge];
                if free > 0 && levels[to] == usize::MAX {
                    levels[to] = levels[node] + 1;
                    open.push_back(to);
                }
            }
        }
        levels
    }

    /// Fills shortest paths until each has a full edge; returns how much arrived.
    fn block(&mut self, source: usize, sink: usize, levels: &[usize]) -> u64 {
        // The edge of each node to try next: those before it lead nowhere.
        let mut next = vec![0; self.from.len()];
        let mut path: Vec<usize> = vec![];
        let mut arrived = 0;
        loop {
            let node = path.last().map_or(source, |&edge| self.edges[edge].to);
            if node == sink {
                let amount = path.iter().map(|&edge| self.edges[edge].free).min().unwrap_or_default();
                for &edge in &path {
                    self.edges[edge].free -= amount;
                    let back = &mut self.edges[edge ^ 1].free;
                    *back = back.saturating_add(amount);
                }
                arrived += amount;
                // Back to the first edge that is full now.
                let full = path.iter().position(|&edge| self.edges[edge].free == 0).unwrap_or(0);
                path.truncate(full);
            } else if let Some(&edge) = self.from[node].get(next[node]) {
                let Edge { to, free } = self.edges[edge];
                if free > 0 && levels[to] == levels[node] + 1 {
                    path.push(edge);
                } else {
                    next[node] += 1;
                }
            } else if let Some(edge) = path.pop() {
                next[self.edges[edge ^ 1].to] += 1;
            } else {
                return arrived;
            }
        }
    }
}
