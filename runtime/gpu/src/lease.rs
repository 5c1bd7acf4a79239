//! The GPUs of the host that a job has: exact devices, decided once when it is admitted.
//!
//! A [`Slot`] is one device, or a slice of one; a [`DeviceSet`] is what one task has while it runs. Roles that never run
//! together may have seats on the same slots, and the tasks of a role with `parallel` take its seats in turns.

use std::collections::BTreeSet;

use jobc_schema::gpu::Enforcement;
use serde::{Deserialize, Serialize};

use super::inventory::DeviceId;

/// The GPUs of the host that a job has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuLease {
    /// The devices and slices of devices, each once.
    pub slots: Vec<Slot>,
    /// The seats of tasks, by role and number: task `i` has the seat `i` where all instances of a role run at once.
    pub seats: Vec<DeviceSet>,
}

/// A device that a job has, or a slice of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// The card or the MIG instance.
    pub device: DeviceId,
    /// Its name on the host: `GPU-…`, `MIG-…`, or its number.
    pub name: String,
    /// How much of it; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice: Option<Slice>,
}

/// A part of a card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slice {
    /// Bytes of the card's memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Percent of the card's cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores_percent: Option<u32>,
    /// The method that provides it.
    pub by: Sharing,
    /// The method that keeps tasks within it.
    pub enforced_by: Enforcement,
    /// All cards of the task that has it, in order; with MPS one server serves exactly these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cards: Vec<DeviceId>,
}

/// How several tasks share a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sharing {
    /// The card is cut up (Multi-Instance GPU).
    Mig,
    /// NVIDIA's Multi-Process Service.
    Mps,
    /// HAMi-core, a library between a program and the driver.
    Hami,
    /// The card's own time slices, and no limits.
    None,
    /// Jobs take turns: all but one are frozen.
    Time,
}

/// The devices of a task while it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceSet {
    /// The role whose tasks have it.
    pub role: String,
    /// Its number among the role's seats, from 0.
    pub number: u32,
    /// Places in [`GpuLease::slots`], in the order in which the task sees the devices.
    pub slots: Vec<usize>,
}

impl GpuLease {
    /// Whether the job has no GPUs.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The cards on which the job takes turns with others, in order.
    pub fn cards_in_turns(&self) -> BTreeSet<DeviceId> {
        let in_turns = |slot: &&Slot| slot.slice.as_ref().is_some_and(|slice| slice.by == Sharing::Time);
        self.slots.iter().filter(in_turns).map(|slot| slot.device).collect()
    }

    /// The devices of a seat, in order.
    pub fn slots_of<'a>(&'a self, seat: &'a DeviceSet) -> impl Iterator<Item = &'a Slot> {
        // A record is untrusted: any user may have written it.
        seat.slots.iter().filter_map(|&slot| self.slots.get(slot))
    }

    /// The slot of a name that a task's record has.
    pub fn slot_named(&self, name: &str) -> Option<&Slot> {
        self.slots.iter().find(|slot| slot.name == name)
    }
}

impl Sharing {
    /// The method that keeps tasks within their slices.
    pub fn enforcer(self) -> Enforcement {
        match self {
            Self::Mig => Enforcement::Hardware,
            Self::Mps => Enforcement::Driver,
            Self::Hami => Enforcement::Library,
            Self::None | Self::Time => Enforcement::Nothing,
        }
    }

    /// The word that records and the command line use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mig => "mig",
            Self::Mps => "mps",
            Self::Hami => "hami",
            Self::None => "none",
            Self::Time => "time",
        }
    }
}
