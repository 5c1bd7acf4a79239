//! Calls on the nodes of GPUs, counted by node.

use std::collections::BTreeMap;

use serde::Serialize;

use super::line::Call;

/// The counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calls {
    /// How long was traced.
    pub seconds: f64,
    /// A node and a kind of call, with what was counted.
    pub nodes: BTreeMap<(String, &'static str), CallCounts>,
}

/// Calls of one type on a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CallCounts {
    /// How many.
    pub calls: u64,
    /// How many of them failed.
    pub errors: u64,
    /// Seconds in the kernel, of all together.
    pub seconds: f64,
    /// Seconds of the longest.
    pub longest: f64,
}

/// The kinds of calls, independent of the kernel's names.
const KINDS: [(&str, &str); 5] =
    [("open", "open"), ("openat", "open"), ("openat2", "open"), ("mmap", "mmap"), ("ioctl", "ioctl")];

impl Calls {
    /// Counts a call, if it is about a GPU's node.
    pub(super) fn count(&mut self, call: Option<Call>) {
        let Some(call) = call else { return };
        let Some((_, kind)) = KINDS.iter().find(|(name, _)| *name == call.name) else { return };
        let Some(node) = call.file().filter(|file| is_node(file)) else { return };
        let counted = self.nodes.entry((node, kind)).or_default();
        let seconds = call.seconds.unwrap_or(0.0);
        counted.calls += 1;
        counted.errors += u64::from(call.failed());
        counted.seconds += seconds;
        counted.longest = counted.longest.max(seconds);
    }
}

/// Whether a file is a node of a GPU's driver, by the names that drivers give them.
fn is_node(file: &str) -> bool {
    ["/dev/nvidia", "/dev/dri/", "/dev/kfd", "/dev/dxg"].iter().any(|prefix| file.starts_with(prefix))
}
