//! The free GPUs of a machine, as printed by `jobc gpu ls`.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;

use crate::place::{Amount, Capacity};

#[derive(Deserialize)]
struct GpuList {
    #[serde(default)]
    gpus: Vec<Value>,
    #[serde(default)]
    leases: Vec<Lease>,
}

#[derive(Deserialize)]
struct Lease {
    device: Device,
}

/// A GPU, or a slice of one: a GPU of which a slice is in use is not free.
#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Device {
    vendor: String,
    gpu: u32,
}

/// Reads the list; none if it is not one.
pub(super) fn read(machine: &str, text: &[u8]) -> Option<Capacity> {
    let list: GpuList = serde_json::from_slice(text).ok()?;
    let used: BTreeSet<&Device> = list.leases.iter().map(|lease| &lease.device).collect();
    let total = list.gpus.len() as u64;
    let gpus = Amount { free: Some(total.saturating_sub(used.len() as u64)), total };
    Some(Capacity { name: format!("machine {machine}"), gpus: Some(gpus), ..Capacity::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_of_which_a_slice_is_in_use_is_not_free() {
        let device =
            |gpu: u32, mig: u32| serde_json::json!({"device": {"vendor": "nvidia", "gpu": gpu, "mig": mig}});
        let list = serde_json::json!({"gpus": [{}, {}, {}], "leases": [device(0, 1), device(0, 2)]});
        let found = read("box", list.to_string().as_bytes()).unwrap();
        assert_eq!(
            (found.name.as_str(), found.gpus),
            ("machine box", Some(Amount { free: Some(2), total: 3 }))
        );
        assert_eq!(read("box", b"no JSON"), None);
    }
}
