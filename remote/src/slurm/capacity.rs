//! What is free in the partitions of a cluster, by `sinfo`.

use jobc_sys::error::Result;

use super::access::Access;
use super::login::Capacities;
use crate::place::{Amount, Capacity};

/// A row for each partition, in Slurm's order.
pub(crate) fn of_cluster(access: &Access) -> Result<Vec<Capacity>> {
    let (nodes, waiting) = access.ask("ask Slurm what is free", Capacities)?;
    Ok(read(&nodes, &waiting))
}

fn read(nodes: &str, waiting: &str) -> Vec<Capacity> {
    let mut partitions: Vec<(&str, Partition)> = Vec::new();
    for line in nodes.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [partition, _, state, cpus, gpus, used] = fields[..] else { continue };
        let known = partitions.iter().position(|(name, _)| *name == partition);
        let at = known.unwrap_or(partitions.len());
        if known.is_none() {
            partitions.push((partition, Partition::default()));
        }
        partitions[at].1.add(state, cpus, gpu_count(gpus), gpu_count(used));
    }
    // A job may wait for several.
    for partition in waiting.lines().flat_map(|line| line.trim().split(',')) {
        for (_, found) in partitions.iter_mut().filter(|(name, _)| *name == partition) {
            found.waiting += 1;
        }
    }
    partitions.into_iter().map(|(name, partition)| partition.capacity(name)).collect()
}

#[derive(Default)]
struct Partition {
    nodes: [u64; 2],
    gpus: [u64; 2],
    cpus: [u64; 2],
    unusable: u64,
    waiting: u64,
}

impl Partition {
    fn add(&mut self, state: &str, cpus: &str, gpus: u64, used: u64) {
        // `allocated/idle/other/total`.
        let cpus: Vec<u64> = cpus.split('/').map(|count| count.parse().unwrap_or_default()).collect();
        let [_, idle, _, total] = cpus[..] else { return };
        self.nodes[1] += 1;
        self.cpus[1] += total;
        self.gpus[1] += gpus;
        // `*` is a node that does not respond; others are about power.
        let word = state.trim_end_matches(['~', '#', '%', '!', '$', '@', '^', '-']);
        if !matches!(word, "idle" | "mix" | "alloc" | "comp" | "plnd") {
            self.unusable += 1;
            return;
        }
        self.nodes[0] += u64::from(word == "idle");
        self.cpus[0] += idle;
        self.gpus[0] += gpus.saturating_sub(used);
    }

    fn capacity(self, name: &str) -> Capacity {
        let amount = |[free, total]: [u64; 2]| Some(Amount { free: Some(free), total });
        Capacity {
            name: format!("partition {name}"),
            nodes: amount(self.nodes),
            gpus: if self.gpus[1] > 0 { amount(self.gpus) } else { None },
            cpus: amount(self.cpus),
            waiting: Some(self.waiting),
            note: (self.unusable > 0).then(|| format!("{} down, drained or reserved", self.unusable)),
        }
    }
}

/// The GPUs in a list of generic resources: `gpu:a100:4(S:0-1),nic:2`, `gpu:a100:2(IDX:0,3)`.
fn gpu_count(list: &str) -> u64 {
    let mut depth = 0;
    let plain: String = list
        .chars()
        .filter(|c| {
            depth += i32::from(*c == '(');
            let is_outside = depth == 0;
            depth -= i32::from(*c == ')');
            is_outside
        })
        .collect();
    let gpus = plain.split(',').filter(|entry| *entry == "gpu" || entry.starts_with("gpu:"));
    gpus.filter_map(|entry| entry.rsplit(':').next()?.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_the_sums_of_their_nodes() {
        let nodes = "\
all n0 idle 0/64/0/64 gpu:a100:8(S:0-1) gpu:a100:0(IDX:N/A)
all n1 mix 4/60/0/64 gpu:a100:8(S:0-1) gpu:a100:3(IDX:0-1,5)
all n2 drain 0/0/64/64 gpu:a100:8(S:0-1) gpu:a100:0(IDX:N/A)
all n3 idle* 0/0/64/64 gpu:a100:8 gpu:0
cpu n4 idle~ 0/32/0/32 (null) (null)
broken
";
        let found = read(nodes, "all\nall,cpu\n");
        let amount = |free, total| Some(Amount { free: Some(free), total });
        assert_eq!(found.len(), 2);
        assert_eq!(
            (found[0].name.as_str(), found[0].nodes, found[0].gpus),
            ("partition all", amount(1, 4), amount(13, 32))
        );
        assert_eq!((found[0].cpus, found[0].waiting), (amount(124, 256), Some(2)));
        assert_eq!(found[0].note.as_deref(), Some("2 down, drained or reserved"));
        assert_eq!((found[1].nodes, found[1].gpus, found[1].waiting), (amount(1, 1), None, Some(1)));
    }

    #[test]
    fn only_gpus_are_counted() {
        for (list, count) in [
            ("gpu:4", 4),
            ("gpu:a100:2,gpu:h100:1,nic:9", 3),
            ("(null)", 0),
            ("gpu:a100:2(IDX:0,3),shard:7", 2),
        ] {
            assert_eq!(gpu_count(list), count, "{list}");
        }
    }
}
