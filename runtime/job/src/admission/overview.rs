//! The ledger for reports: the job of each GPU, and the queue.

use std::collections::BTreeMap;

use serde::Serialize;

use super::capacity::Capacity;
use super::gpus;
use super::ledger::{Entry, EntryState, Ledger};
use super::order::Order;
use super::rules::Rules;
use jobc_gpu::lease::{Sharing, Slice};
use jobc_gpu::{DeviceId, Inventory};
use jobc_place::time::Time;
use jobc_sys::error::Result;

/// The GPUs in the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Overview {
    /// The jobs' shares, by device.
    pub leases: Vec<Lease>,
    /// The waiting jobs, in the order in which they are admitted.
    pub waiting: Vec<QueuedJob>,
}

/// The share of a job in a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lease {
    /// The device.
    pub device: DeviceId,
    /// Its name on the host.
    pub name: String,
    /// The job's id.
    pub job: String,
    /// The UID of its owner.
    pub user: u32,
    /// How much of it; absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slice: Option<Slice>,
}

/// A job that waits for GPUs, or behind one that does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct QueuedJob {
    /// Its place in the queue, from 1.
    pub place: usize,
    /// The job's id.
    pub job: String,
    /// The UID of its owner.
    pub user: u32,
    /// The missing resources, as text.
    pub waits_for: String,
}

/// How many slices by MPS all jobs have, by the name of the GPU.
pub fn slices_by_mps(ledger: &Ledger) -> BTreeMap<String, u32> {
    let mut slices = BTreeMap::new();
    for slot in ledger.peek_claims().into_iter().flat_map(|claim| claim.leased.slots) {
        if slot.slice.is_some_and(|slice| slice.by == Sharing::Mps) {
            *slices.entry(slot.name).or_default() += 1;
        }
    }
    slices
}

impl Overview {
    /// Reads the ledger.
    pub fn of(ledger: &Ledger, inventory: &Inventory) -> Result<Self> {
        let entries = ledger.entries()?;
        let rules = Rules::of_host()?;
        let capacity = Capacity::default().with_gpus(inventory.clone());
        let order = Order::new(&rules, &entries, &capacity, Time::now().millis() / 1000);
        let mut sorted: Vec<&Entry> = entries.iter().collect();
        sorted.sort_by(|one, other| order.compare(one, other));
        let mut overview = Self::default();
        for entry in sorted.iter().filter(|entry| entry.state == EntryState::Admitted) {
            overview.leases.extend(entry.claim.leased.slots.iter().map(|slot| Lease {
                device: slot.device,
                name: slot.name.clone(),
                job: entry.id.clone(),
                user: entry.uid,
                slice: slot.slice.clone(),
            }));
        }
        overview.leases.sort_by_key(|lease| lease.device);
        let queue = sorted.iter().filter(|entry| entry.state == EntryState::Waiting);
        for (place, entry) in (1..).zip(queue).filter(|(_, entry)| !entry.demands.is_empty()) {
            let before = order.before(&entries, entry);
            let short = gpus::describe_shortage(&entry.claim, &entry.demands, inventory, &before, entry.uid);
            overview.waiting.push(QueuedJob {
                place,
                job: entry.id.clone(),
                user: entry.uid,
                // If no GPUs are missing now, the job is admitted at its next check, or it lacks something else.
                waits_for: short.unwrap_or_else(|| "its turn".to_owned()),
            });
        }
        Ok(overview)
    }
}
