//! Which devices a job gets: all that it asks for at once, or none.
//!
//! Linked devices are kept together, and a linked group is not split for a job if a card with fewer links is
//! sufficient; among equal choices the lowest numbers are used. A task's devices are near each other first, then those
//! of a role, and cards that programs outside of jobs use are taken last. Roles that never run together have the same
//! devices if possible.
//!
//! Everything is decided from the inventory, what others have, and the demands, so the same question has the same
//! answer.

mod near;
mod slices;
mod taken;

use super::demand::{Demand, Demands};
use super::inventory::{DeviceId, Inventory};
use super::lease::{Leased, Seat, Sharing, Slice, Slot};
use super::suits::suits;
use near::Candidate;
pub use taken::Taken;

/// Where demands are placed: the host, and what of it is taken.
#[derive(Clone, Copy, Debug)]
pub struct Room<'a> {
    /// The host.
    pub inventory: &'a Inventory,
    /// What others have.
    pub taken: &'a Taken,
    /// The requesting user: one MPS server cannot serve programs of two users.
    pub uid: u32,
}

/// A demand, by its index, that does not fit together with those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misfit(pub usize);

/// Finds devices for all of a job.
///
/// Where some order of the roles needs fewer devices than another, because more of them follow each other on the same
/// ones, that is the one. At worst a job with needs that cross has a device more than it uses at any time.
///
/// # Errors
///
/// The demand that does not fit.
pub fn place(demands: &Demands, room: Room<'_>) -> Result<Leased, Misfit> {
    let plan: Vec<usize> = (0..demands.roles.len()).collect();
    let mut heavy = plan.clone();
    // What few devices will do for comes before what takes any.
    heavy.sort_by_key(|&place| {
        let demand = &demands.roles[place];
        (demand.pins.is_empty(), demand.takes_any(), std::cmp::Reverse(demand.total()))
    });
    let reversed: Vec<usize> = plan.iter().rev().copied().collect();
    let mut best: Option<Result<Leased, Misfit>> = None;
    for order in [heavy, plan, reversed] {
        let placed = Placing::new(demands, room).all(&order);
        let better = match (&best, &placed) {
            (None, _) | (Some(Err(_)), Ok(_)) => true,
            (Some(Ok(best)), Ok(placed)) => placed.slots.len() < best.slots.len(),
            _ => false,
        };
        if better {
            best = Some(placed);
        }
        if demands.roles.len() < 2 {
            break;
        }
    }
    best.unwrap_or(Ok(Leased::default()))
}

/// Devices of the host that match a demand, in use or not.
pub fn eligible(demand: &Demand, inventory: &Inventory) -> Vec<DeviceId> {
    let all = if demand.pins.is_empty() { inventory.devices() } else { demand.pins.clone() };
    let will_do = |device: &DeviceId| {
        let Some(gpu) = inventory.gpu(*device) else { return false };
        let form = match &demand.share {
            Some((share, Sharing::Mig)) => slices::is_instance(share, *device, inventory),
            Some(_) => device.mig.is_none(),
            // An explicitly named instance is always allowed.
            None => device.mig.is_none() || !demand.pins.is_empty(),
        };
        form && suits(demand, gpu, inventory)
    };
    all.into_iter().filter(will_do).collect()
}

/// How many more devices, or slices, of a demand there is room for.
pub fn room_for(demand: &Demand, room: Room<'_>) -> u64 {
    let devices = eligible(demand, room.inventory);
    match demand.soft() {
        None => devices.iter().filter(|device| room.taken.is_free(**device)).count() as u64,
        Some((share, by)) => {
            let more = |device: &DeviceId| slices::more(share, by, *device, room);
            devices.iter().map(more).fold(0, u64::saturating_add)
        }
    }
}

/// A job that is being placed.
struct Placing<'a> {
    demands: &'a Demands,
    room: Room<'a>,
    /// What others have, and slices that this job has by now.
    taken: Taken,
    leased: Leased,
    /// Which demands use a slot.
    users: Vec<Vec<usize>>,
}

impl<'a> Placing<'a> {
    fn new(demands: &'a Demands, room: Room<'a>) -> Self {
        Self { demands, room, taken: room.taken.clone(), leased: Leased::default(), users: Vec::new() }
    }

    fn all(mut self, order: &[usize]) -> Result<Leased, Misfit> {
        for &place in order {
            let demand = &self.demands.roles[place];
            let placed = match (demand.soft(), &demand.share) {
                (Some((share, by)), _) => self.slices(place, share, by),
                (None, Some((share, _))) => self.instances(place, share.same_card),
                (None, None) => self.whole(place),
            };
            placed.ok_or(Misfit(place))?;
        }
        // Seats in the order of the plan and their numbers, whatever the order of placement was.
        let role = |name: &str| self.demands.roles.iter().position(|demand| demand.role == name);
        self.leased.seats.sort_by_key(|seat| (role(&seat.role), seat.number));
        Ok(self.leased)
    }

    /// Whole devices: all of the role's near each other, then those of each task.
    fn whole(&mut self, place: usize) -> Option<()> {
        let demand = &self.demands.roles[place];
        let (each, seats) = (demand.each as usize, demand.seats as usize);
        let free = self.candidates(place);
        let mut chosen = if demand.pins.is_empty() {
            near::choose(&free, each * seats, self.room.inventory)?
        } else {
            // Whoever names devices has decided.
            (free.len() >= each * seats).then(|| free[..each * seats].to_vec())?
        };
        for number in 0..seats {
            let mut of_seat = if demand.pins.is_empty() {
                near::choose(&chosen, each, self.room.inventory)?
            } else {
                chosen[..each].to_vec()
            };
            chosen.retain(|candidate| !of_seat.contains(candidate));
            if demand.pins.is_empty() {
                of_seat.sort_by_key(|candidate| candidate.device);
            }
            self.sit(place, number, of_seat, None);
        }
        Some(())
    }

    /// Instances of cards that are cut up: for each task on different cards, or all on one.
    fn instances(&mut self, place: usize, same_card: bool) -> Option<()> {
        let demand = &self.demands.roles[place];
        let each = demand.each as usize;
        for number in 0..demand.seats as usize {
            let free = self.candidates(place);
            let of_seat = slices::instances(&free, each, same_card, self.room.inventory)?;
            let slice = Slice {
                memory_bytes: None,
                cores_percent: None,
                by: Sharing::Mig,
                enforced_by: Sharing::Mig.enforcer(),
                cards: vec![],
            };
            self.sit(place, number, of_seat, Some(&slice));
        }
        Some(())
    }

    /// What a demand may have now: slots of roles that are never there with it, and free devices.
    fn candidates(&self, place: usize) -> Vec<Candidate> {
        let demand = &self.demands.roles[place];
        let devices = eligible(demand, self.room.inventory);
        let candidate = |device: DeviceId| {
            let own = self.leased.slots.iter().position(|slot| slot.device == device);
            let is_mig = matches!(demand.share, Some((_, Sharing::Mig)));
            let reusable = |slot: &usize| {
                let same_kind =
                    self.leased.slots[*slot].slice.as_ref().is_none_or(|slice| slice.by == Sharing::Mig);
                same_kind && self.users[*slot].iter().all(|user| demand.apart.contains(user))
            };
            let slot = match own {
                Some(slot) if reusable(&slot) => Some(slot),
                None if self.taken.is_free(device) => None,
                _ => return None,
            };
            let gpu = self.room.inventory.gpu(device)?;
            // The card's processes do not show the use of a MIG instance.
            let busy = !is_mig && device.mig.is_none() && !gpu.processes.is_empty();
            Some(Candidate { device, slot, busy })
        };
        devices.into_iter().filter_map(candidate).collect()
    }

    /// Gives a seat its devices.
    fn sit(&mut self, place: usize, number: usize, devices: Vec<Candidate>, slice: Option<&Slice>) {
        let slots = devices.into_iter().map(|Candidate { device, slot, .. }| {
            let slot = slot.unwrap_or_else(|| self.lease(device, slice.cloned()));
            self.users[slot].push(place);
            slot
        });
        let slots = slots.collect();
        self.leased.seats.push(self.seat(place, number, slots));
    }

    fn seat(&self, place: usize, number: usize, slots: Vec<usize>) -> Seat {
        let role = self.demands.roles[place].role.clone();
        Seat { role, number: u32::try_from(number).unwrap_or(u32::MAX), slots }
    }

    /// Takes a device, or a slice of one, that the job has not had.
    fn lease(&mut self, device: DeviceId, slice: Option<Slice>) -> usize {
        let slot = Slot { device, name: self.room.inventory.name(device), slice };
        self.taken.add(&slot, self.room.uid);
        self.leased.slots.push(slot);
        self.users.push(Vec::new());
        self.leased.slots.len() - 1
    }
}

#[cfg(test)]
mod tests;
