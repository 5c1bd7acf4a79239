//! Slices of cards: instances of those that are cut up, and parts of those that tasks share.

use jobc_schema::plan::SharePlan;

use super::topology::{self, Candidate};
use super::{FreeDevices, Placement};
use crate::inventory::{DeviceId, Inventory};
use crate::lease::{Sharing, Slice};

/// Maximum slices of a card: the number of clients of an MPS server.
const MAX_SLICES_PER_CARD: u64 = 48;

/// Whether a device is an instance that a share allows: of its profile, or large enough.
pub(super) fn is_instance(share: &SharePlan, device: DeviceId, inventory: &Inventory) -> bool {
    let (Some(instance), Some(gpu)) = (inventory.mig(device), inventory.gpu(device)) else { return false };
    if let Some(wanted) = &share.profile {
        return instance.profile.as_ref().is_some_and(|profile| profile.eq_ignore_ascii_case(wanted));
    }
    // An A30 and an RTX PRO 6000 are cut into four parts, all others into seven (stdlib/gpu/mig.yaml).
    let parts = if gpu.name.contains("A30") || gpu.name.contains("RTX PRO 6000") { 4 } else { 7 };
    let of_profile = |profile: &String| profile.split_once('g')?.0.parse::<u32>().ok();
    let cores = instance.profile.as_ref().and_then(of_profile).map(|has| has * 100 / parts);
    share.memory_bytes.is_none_or(|wanted| instance.memory_bytes.is_some_and(|has| has >= wanted))
        && share.cores_percent.is_none_or(|wanted| cores.is_some_and(|has| has >= wanted))
}

/// Chooses instances for a task, on different cards or on one: the smallest that suffice, then of the card that has the
/// fewest left.
pub(super) fn choose_instances(
    free: &[Candidate],
    count: usize,
    same_card: bool,
    inventory: &Inventory,
) -> Option<Vec<Candidate>> {
    let size = |candidate: &Candidate| inventory.mig(candidate.device).and_then(|mig| mig.memory_bytes);
    let on = |card: u32| free.iter().filter(move |candidate| candidate.device.gpu == card);
    let key = |candidate: &Candidate| {
        let left = on(candidate.device.gpu).count();
        (candidate.slot.is_none(), size(candidate), left, candidate.device)
    };
    let mut sorted: Vec<&Candidate> = free.iter().collect();
    sorted.sort_by_key(|candidate| key(candidate));
    let mut chosen: Vec<Candidate> = Vec::new();
    if same_card {
        let first = sorted.iter().find(|candidate| on(candidate.device.gpu).count() >= count)?;
        let card = first.device.gpu;
        chosen
            .extend(sorted.into_iter().filter(|candidate| candidate.device.gpu == card).take(count).cloned());
    } else {
        for candidate in sorted {
            if chosen.len() < count && chosen.iter().all(|other| other.device.gpu != candidate.device.gpu) {
                chosen.push(candidate.clone());
            }
        }
    }
    chosen.sort_by_key(|candidate| candidate.device);
    (chosen.len() == count).then_some(chosen)
}

/// How many more slices a card has room for.
pub(super) fn available_slices(share: &SharePlan, by: Sharing, card: DeviceId, room: FreeDevices<'_>) -> u64 {
    let Ok(shared) = room.usage.shared(card) else { return 0 };
    // The tasks of one job run together, so each has cards of its own.
    let most = if by == Sharing::Time { 1 } else { MAX_SLICES_PER_CARD };
    let total = room.inventory.gpu(card).and_then(|gpu| gpu.memory_bytes).unwrap_or_default();
    let (memory, cores, slices) = match shared {
        Some(shared) if shared.by != by || (by == Sharing::Mps && shared.uid != room.uid) => return 0,
        Some(shared) => (shared.memory_bytes, shared.cores_percent, shared.slices),
        None => (0, 0, 0),
    };
    let by_memory =
        share.memory_bytes.map_or(MAX_SLICES_PER_CARD, |each| total.saturating_sub(memory) / each.max(1));
    let by_cores = share
        .cores_percent
        .map_or(MAX_SLICES_PER_CARD, |each| u64::from(100_u32.saturating_sub(cores) / each.max(1)));
    by_memory.min(by_cores).min(MAX_SLICES_PER_CARD.saturating_sub(slices)).min(most)
}

impl Placement<'_> {
    /// Slices of cards that several tasks have at once.
    pub(super) fn place_slices(&mut self, place: usize, share: &SharePlan, by: Sharing) -> Option<()> {
        let demand = &self.demands.roles[place];
        let cards = demand.cards() as usize;
        // All slices of a task on one card are one slice of their total size.
        let times = if share.same_card { demand.each } else { 1 };
        let part = SharePlan {
            memory_bytes: share.memory_bytes.map(|bytes| bytes.saturating_mul(u64::from(times))),
            cores_percent: share.cores_percent.map(|percent| percent.saturating_mul(times)),
            ..share.clone()
        };
        for number in 0..demand.seats as usize {
            let slots = if let Some(slots) = self.reuse_slices(place, &part, by, cards) {
                slots
            } else {
                let set = self.cards_with_room(place, &part, by, cards)?;
                let slice = Slice {
                    memory_bytes: part.memory_bytes,
                    cores_percent: part.cores_percent,
                    by,
                    enforced_by: by.enforcer(),
                    cards: set.clone(),
                };
                set.into_iter().map(|card| self.add_slot(card, Some(slice.clone()))).collect()
            };
            for &slot in &slots {
                self.users[slot].push(place);
            }
            self.lease.seats.push(self.device_set(place, number, slots));
        }
        Some(())
    }

    /// A seat with the same slices of a role that is never there at the same time.
    fn reuse_slices(&self, place: usize, part: &SharePlan, by: Sharing, cards: usize) -> Option<Vec<usize>> {
        let demand = &self.demands.roles[place];
        let allowed = super::eligible(demand, self.free.inventory);
        let will_do = |slot: &usize| {
            let (slot, users) = (&self.lease.slots[*slot], &self.users[*slot]);
            let same = slot.slice.as_ref().is_some_and(|slice| {
                (slice.by, slice.memory_bytes, slice.cores_percent)
                    == (by, part.memory_bytes, part.cores_percent)
            });
            same && allowed.contains(&slot.device) && users.iter().all(|user| demand.apart.contains(user))
        };
        let mut seats = self.lease.seats.iter();
        seats
            .find(|seat| seat.slots.len() == cards && seat.slots.iter().all(will_do))
            .map(|seat| seat.slots.clone())
    }

    /// Different cards with room for a slice each: those that are shared already, the fullest first, then free ones.
    fn cards_with_room(
        &self,
        place: usize,
        part: &SharePlan,
        by: Sharing,
        cards: usize,
    ) -> Option<Vec<DeviceId>> {
        let room = FreeDevices { usage: &self.usage, ..self.free };
        let demand = &self.demands.roles[place];
        let with_room: Vec<DeviceId> = super::eligible(demand, room.inventory)
            .into_iter()
            .filter(|card| available_slices(part, by, *card, room) > 0)
            .filter(|card| by != Sharing::Time || !self.lease.slots.iter().any(|slot| slot.device == *card))
            .collect();
        let shared_by = |card: &DeviceId| room.usage.shared(*card).ok().flatten();
        let mut shared: Vec<DeviceId> =
            with_room.iter().copied().filter(|card| shared_by(card).is_some()).collect();
        let left = |card: &DeviceId| (available_slices(part, by, *card, room), *card);
        shared.sort_by_key(left);
        if by == Sharing::Mps {
            // One server serves exactly the cards of a task: a set goes together or not at all.
            let sets = shared.iter().filter_map(&shared_by).map(|shared| shared.cards.clone());
            let all_with_room = |set: &Vec<DeviceId>| set.iter().all(|card| with_room.contains(card));
            if let Some(set) = sets.filter(|set| set.len() == cards).find(all_with_room) {
                return Some(set);
            }
            shared.clear();
        }
        if by == Sharing::Time {
            // A card of its own first: there a job waits for no turns; then where the fewest wait.
            shared.sort_by_key(|card| (shared_by(card).map(|shared| shared.slices), *card));
            shared.truncate(cards.saturating_sub(with_room.len() - shared.len()));
        }
        shared.truncate(cards);
        let free = with_room.iter().filter(|card| shared_by(card).is_none());
        let busy = |card: &DeviceId| room.inventory.gpu(*card).is_some_and(|gpu| !gpu.processes.is_empty());
        let free: Vec<Candidate> =
            free.map(|card| Candidate { device: *card, slot: None, busy: busy(card) }).collect();
        let further = if demand.pins.is_empty() {
            topology::choose(&free, cards - shared.len(), room.inventory)?
        } else {
            free.get(..cards - shared.len())?.to_vec()
        };
        shared.extend(further.into_iter().map(|candidate| candidate.device));
        shared.sort();
        Some(shared)
    }
}
