//! The devices of a host that jobs use: whole ones, and slices of cards.

use std::collections::{BTreeMap, BTreeSet};

use crate::inventory::DeviceId;
use crate::lease::{GpuLease, Sharing, Slot};

/// The used devices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceUsage {
    whole: BTreeSet<DeviceId>,
    shared: BTreeMap<DeviceId, SharedCard>,
}

/// The used slices of a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SharedCard {
    /// Bytes of its memory.
    pub(super) memory_bytes: u64,
    /// Percent of its cores.
    pub(super) cores_percent: u32,
    /// How many slices.
    pub(super) slices: u64,
    /// The method that provides them.
    pub(super) by: Sharing,
    /// The cards that the same server serves.
    pub(super) cards: Vec<DeviceId>,
    /// Their owner.
    pub(super) uid: u32,
}

impl DeviceUsage {
    /// Adds what a job of a user has.
    pub fn add_lease(&mut self, leased: &GpuLease, uid: u32) {
        leased.slots.iter().for_each(|slot| self.add_slot(slot, uid));
    }

    pub(super) fn add_slot(&mut self, slot: &Slot, uid: u32) {
        let slice = slot.slice.as_ref().filter(|slice| slice.by != Sharing::Mig);
        let Some(slice) = slice else { return self.add_device(slot.device) };
        let shared = self.shared.entry(slot.device).or_insert_with(|| SharedCard {
            memory_bytes: 0,
            cores_percent: 0,
            slices: 0,
            by: slice.by,
            cards: slice.cards.clone(),
            uid,
        });
        shared.memory_bytes = shared.memory_bytes.saturating_add(slice.memory_bytes.unwrap_or_default());
        shared.cores_percent = shared.cores_percent.saturating_add(slice.cores_percent.unwrap_or_default());
        shared.slices += 1;
    }

    /// Takes a whole device.
    pub fn add_device(&mut self, device: DeviceId) {
        self.whole.insert(device);
    }

    /// Whether no part of it is taken, nor any of its card's instances or its card.
    pub fn is_free(&self, device: DeviceId) -> bool {
        let card = DeviceId { mig: None, ..device };
        let instance = device.mig.is_none()
            && self.whole.iter().any(|other| other.mig.is_some() && DeviceId { mig: None, ..*other } == card);
        !instance
            && ![device, card].iter().any(|one| self.whole.contains(one) || self.shared.contains_key(one))
    }

    /// The slices taken of a card; `None` if it is taken as a whole.
    pub(super) fn shared(&self, card: DeviceId) -> Result<Option<&SharedCard>, ()> {
        match self.shared.get(&card) {
            _ if self.whole.contains(&card) => Err(()),
            None if !self.is_free(card) => Err(()),
            shared => Ok(shared),
        }
    }
}
