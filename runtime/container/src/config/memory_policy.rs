//! The NUMA memory policy: `linux.memoryPolicy`, for set_mempolicy(2).

use std::fmt;

use oci_spec::runtime::{LinuxMemoryPolicy, MemoryPolicyFlagType, MemoryPolicyModeType};

use super::scheduling::bits;
use crate::cgroup::parse_list;
use jobc_sys::error::{Error, Kind, Result};

use MemoryPolicyFlagType::{MpolFNumaBalancing, MpolFRelativeNodes, MpolFStaticNodes};
use MemoryPolicyModeType::{
    MpolBind, MpolDefault, MpolInterleave, MpolLocal, MpolPreferred, MpolPreferredMany,
    MpolWeightedInterleave,
};

/// The modes, with the kernel's numbers (linux/mempolicy.h).
const MODES: [(MemoryPolicyModeType, u32); 7] = [
    (MpolDefault, 0),
    (MpolBind, 2),
    (MpolInterleave, 3),
    (MpolWeightedInterleave, 6),
    (MpolPreferred, 1),
    (MpolPreferredMany, 5),
    (MpolLocal, 4),
];

/// The flags, with the bits that they are in a mode.
const FLAGS: [(MemoryPolicyFlagType, u32); 3] =
    [(MpolFNumaBalancing, 1 << 13), (MpolFRelativeNodes, 1 << 14), (MpolFStaticNodes, 1 << 15)];

/// More memory nodes than any kernel is built for.
const MAX_NODES: u32 = 4096;

/// A policy as the kernel takes it.
#[derive(Debug, PartialEq, Eq)]
pub struct MemoryPolicy {
    /// The mode with its flags.
    pub mode: u32,
    /// A bit for each node; empty where there is none.
    pub nodes: Vec<u64>,
    text: String,
}

/// The modes' names.
pub fn mode_names() -> Vec<String> {
    MODES.iter().map(|(mode, _)| mode.to_string()).collect()
}

/// The flags' names.
pub fn flag_names() -> Vec<String> {
    FLAGS.iter().map(|(flag, _)| flag.to_string()).collect()
}

impl MemoryPolicy {
    /// The policy of config.json; the kernel's own rules are checked (`sanitize_mpol_flags` and `mpol_new` of
    /// mm/mempolicy.c), since it reports all of them by one number.
    pub fn of(written: &LinuxMemoryPolicy) -> Result<Self> {
        let wrong = |field: &str, message: String, help: &str| {
            Err(Error::new(Kind::Config, message).at(format!("/linux/memoryPolicy/{field}")).help(help))
        };
        let mode = written.mode();
        let flags = written.flags().as_deref().unwrap_or_default();
        let has = |flag| flags.contains(&flag);
        let list = written.nodes().as_deref().unwrap_or_default();
        let nodes = match parse_list(list) {
            Some(nodes) if nodes.last().is_none_or(|last| *last < MAX_NODES) => nodes,
            _ => {
                let message = format!("invalid memory policy nodes `{list}`");
                let help = "write numbers and ranges of memory nodes, such as `0-3,7`; /sys/devices/system/node/online lists them";
                return wrong("nodes", message, help);
            }
        };
        if has(MpolFStaticNodes) && has(MpolFRelativeNodes) {
            let message = format!("`{MpolFStaticNodes}` and `{MpolFRelativeNodes}` exclude each other");
            return wrong("flags", message, "keep one of the two");
        }
        if has(MpolFNumaBalancing) && !matches!(mode, MpolBind | MpolPreferredMany) {
            let message = format!("the mode `{mode}` cannot have the flag `{MpolFNumaBalancing}`");
            return wrong("flags", message, "remove the flag, or write `MPOL_BIND` or `MPOL_PREFERRED_MANY`");
        }
        let takes_nodes = !matches!(mode, MpolDefault | MpolLocal);
        if !takes_nodes && !nodes.is_empty() {
            let message = format!("the mode `{mode}` requires 0 nodes but got {}", nodes.len());
            return wrong("nodes", message, "remove `nodes`, or write `MPOL_PREFERRED` or another mode");
        }
        let relates = has(MpolFStaticNodes) || has(MpolFRelativeNodes);
        if relates && (!takes_nodes || mode == MpolPreferred && nodes.is_empty()) {
            let message = format!("the mode `{mode}` without nodes cannot have flags about nodes");
            return wrong("flags", message, "remove the flag");
        }
        if takes_nodes && mode != MpolPreferred && nodes.is_empty() {
            let message = format!("the mode `{mode}` requires at least one memory node");
            return wrong("nodes", message, "write `\"nodes\": \"0\"`");
        }
        let number = MODES.iter().find(|(name, _)| *name == mode).map_or(0, |(_, number)| *number);
        let set = FLAGS.iter().filter(|(flag, _)| has(*flag)).fold(0, |set, (_, bit)| set | bit);
        let names: String = flags.iter().map(|flag| format!(", {flag}")).collect();
        let of_nodes = if nodes.is_empty() { String::new() } else { format!(" of the nodes {list}") };
        Ok(Self { mode: number | set, nodes: bits(&nodes), text: format!("{mode}{names}{of_nodes}") })
    }
}

impl fmt::Display for MemoryPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "set the memory policy to {}", self.text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A policy of config.json, and the kernel's terms or the error.
    fn check(written: &Value) -> String {
        let policy = serde_json::from_value(written.clone()).expect("a policy");
        let message = match MemoryPolicy::of(&policy) {
            Ok(policy) => format!("{policy}: {:#x}, {:x?}", policy.mode, policy.nodes),
            Err(error) => format!("{error}\n    {}", error.advice().as_deref().expect("an advice")),
        };
        format!("{written}\n  {message}\n")
    }

    #[test]
    fn policies() {
        let cases = [
            json!({"mode": "MPOL_DEFAULT"}),
            json!({"mode": "MPOL_INTERLEAVE", "nodes": "0-1,65"}),
            json!({"mode": "MPOL_BIND", "nodes": "3", "flags": ["MPOL_F_STATIC_NODES", "MPOL_F_NUMA_BALANCING"]}),
            json!({"mode": "MPOL_PREFERRED"}),
            json!({"mode": "MPOL_WEIGHTED_INTERLEAVE", "nodes": "0"}),
            json!({"mode": "MPOL_DEFAULT", "nodes": "0-7"}),
            json!({"mode": "MPOL_LOCAL", "flags": ["MPOL_F_STATIC_NODES"]}),
            json!({"mode": "MPOL_PREFERRED", "flags": ["MPOL_F_RELATIVE_NODES"]}),
            json!({"mode": "MPOL_BIND"}),
            json!({"mode": "MPOL_BIND", "nodes": "0-9876543210"}),
            json!({"mode": "MPOL_BIND", "nodes": "4096"}),
            json!({"mode": "MPOL_BIND", "nodes": "first"}),
            json!({"mode": "MPOL_BIND", "nodes": "0", "flags": ["MPOL_F_STATIC_NODES", "MPOL_F_RELATIVE_NODES"]}),
            json!({"mode": "MPOL_INTERLEAVE", "nodes": "0", "flags": ["MPOL_F_NUMA_BALANCING"]}),
        ];
        insta::assert_snapshot!(cases.map(|written| check(&written)).concat());
    }
}
