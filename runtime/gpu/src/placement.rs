//! Chooses the devices that a job gets: all that it requests, or none.
//!
//! Linked devices are kept together, and a linked group is not split for a job if a card with fewer links is
//! sufficient; among equal choices the lowest numbers are used. A task's devices are near each other first, then those
//! of a role, and cards that programs outside of jobs use are taken last. Roles that never run together have the same
//! devices if possible.
//!
//! Everything is decided from the inventory, what others have, and the demands, so the same question has the same
//! answer.

mod slices;
mod topology;
mod usage;

use super::demand::{Demand, Demands};
use super::inventory::{DeviceId, Inventory};
use super::lease::{DeviceSet, GpuLease, Sharing, Slice, Slot};
use super::matching::matches_demand;
use topology::Candidate;
pub use usage::DeviceUsage;

/// Where demands are placed: the host, and what of it is taken.
#[derive(Clone, Copy, Debug)]
pub struct FreeDevices<'a> {
    /// The host.
    pub inventory: &'a Inventory,
    /// Devices of other jobs.
    pub usage: &'a DeviceUsage,
    /// The requesting user: one MPS server cannot serve programs of two users.
    pub uid: u32,
}

/// A demand, by its index, that does not fit together with those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacementError(pub usize);

/// Finds devices for all of a job.
///
/// Where some order of the roles needs fewer devices than another, because more of them follow each other on the same
/// ones, that is the one. At worst a job with needs that cross has a device more than it uses at any time.
///
/// # Errors
///
/// The demand that does not fit.
pub fn place(demands: &Demands, room: FreeDevices<'_>) -> Result<GpuLease, PlacementError> {
    let plan: Vec<usize> = (0..demands.roles.len()).collect();
    let mut heavy = plan.clone();
    // Demands that few devices match come before demands that any device matches.
    heavy.sort_by_key(|&place| {
        let demand = &demands.roles[place];
        (demand.pins.is_empty(), demand.accepts_any_device(), std::cmp::Reverse(demand.total()))
    });
    let reversed: Vec<usize> = plan.iter().rev().copied().collect();
    let mut best: Option<Result<GpuLease, PlacementError>> = None;
    for order in [heavy, plan, reversed] {
        let placed = Placement::new(demands, room).place_all(&order);
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
    best.unwrap_or(Ok(GpuLease::default()))
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
        form && matches_demand(demand, gpu, inventory)
    };
    all.into_iter().filter(will_do).collect()
}

/// How many more devices, or slices, of a demand there is room for.
pub fn count_available(demand: &Demand, room: FreeDevices<'_>) -> u64 {
    let devices = eligible(demand, room.inventory);
    match demand.soft_share() {
        None => devices.iter().filter(|device| room.usage.is_free(**device)).count() as u64,
        Some((share, by)) => {
            let more = |device: &DeviceId| slices::available_slices(share, by, *device, room);
            devices.iter().map(more).fold(0, u64::saturating_add)
        }
    }
}

/// A job that is being placed.
struct Placement<'a> {
    demands: &'a Demands,
    free: FreeDevices<'a>,
    /// Devices of other jobs, and slices that this job already has.
    usage: DeviceUsage,
    lease: GpuLease,
    /// The demands that use a slot.
    users: Vec<Vec<usize>>,
}

impl<'a> Placement<'a> {
    fn new(demands: &'a Demands, room: FreeDevices<'a>) -> Self {
        Self { demands, free: room, usage: room.usage.clone(), lease: GpuLease::default(), users: Vec::new() }
    }

    fn place_all(mut self, order: &[usize]) -> Result<GpuLease, PlacementError> {
        for &place in order {
            let demand = &self.demands.roles[place];
            let placed = match (demand.soft_share(), &demand.share) {
                (Some((share, by)), _) => self.place_slices(place, share, by),
                (None, Some((share, _))) => self.place_mig_instances(place, share.same_card),
                (None, None) => self.place_whole_devices(place),
            };
            placed.ok_or(PlacementError(place))?;
        }
        // Seats in the order of the plan, regardless of the order of placement.
        let role = |name: &str| self.demands.roles.iter().position(|demand| demand.role == name);
        self.lease.seats.sort_by_key(|seat| (role(&seat.role), seat.number));
        Ok(self.lease)
    }

    /// Whole devices: all of the role's near each other, then those of each task.
    fn place_whole_devices(&mut self, place: usize) -> Option<()> {
        let demand = &self.demands.roles[place];
        let (each, seats) = (demand.each as usize, demand.seats as usize);
        let free = self.candidates(place);
        let mut chosen = if demand.pins.is_empty() {
            topology::choose(&free, each * seats, self.free.inventory)?
        } else {
            // Devices named by the user are used as given.
            (free.len() >= each * seats).then(|| free[..each * seats].to_vec())?
        };
        for number in 0..seats {
            let mut of_seat = if demand.pins.is_empty() {
                topology::choose(&chosen, each, self.free.inventory)?
            } else {
                chosen[..each].to_vec()
            };
            chosen.retain(|candidate| !of_seat.contains(candidate));
            if demand.pins.is_empty() {
                of_seat.sort_by_key(|candidate| candidate.device);
            }
            self.assign(place, number, of_seat, None);
        }
        Some(())
    }

    /// Instances of cards that are cut up: for each task on different cards, or all on one.
    fn place_mig_instances(&mut self, place: usize, same_card: bool) -> Option<()> {
        let demand = &self.demands.roles[place];
        let each = demand.each as usize;
        for number in 0..demand.seats as usize {
            let free = self.candidates(place);
            let of_seat = slices::choose_instances(&free, each, same_card, self.free.inventory)?;
            let slice = Slice {
                memory_bytes: None,
                cores_percent: None,
                by: Sharing::Mig,
                enforced_by: Sharing::Mig.enforcer(),
                cards: vec![],
            };
            self.assign(place, number, of_seat, Some(&slice));
        }
        Some(())
    }

    /// The devices that a demand can use now: slots of roles that never run at the same time, and free devices.
    fn candidates(&self, place: usize) -> Vec<Candidate> {
        let demand = &self.demands.roles[place];
        let devices = eligible(demand, self.free.inventory);
        let candidate = |device: DeviceId| {
            let own = self.lease.slots.iter().position(|slot| slot.device == device);
            let is_mig = matches!(demand.share, Some((_, Sharing::Mig)));
            let reusable = |slot: &usize| {
                let same_kind =
                    self.lease.slots[*slot].slice.as_ref().is_none_or(|slice| slice.by == Sharing::Mig);
                same_kind && self.users[*slot].iter().all(|user| demand.apart.contains(user))
            };
            let slot = match own {
                Some(slot) if reusable(&slot) => Some(slot),
                None if self.usage.is_free(device) => None,
                _ => return None,
            };
            let gpu = self.free.inventory.gpu(device)?;
            // The card's processes do not show the use of a MIG instance.
            let busy = !is_mig && device.mig.is_none() && !gpu.processes.is_empty();
            Some(Candidate { device, slot, busy })
        };
        devices.into_iter().filter_map(candidate).collect()
    }

    /// Gives a seat its devices.
    fn assign(&mut self, place: usize, number: usize, devices: Vec<Candidate>, slice: Option<&Slice>) {
        let slots = devices.into_iter().map(|Candidate { device, slot, .. }| {
            let slot = slot.unwrap_or_else(|| self.add_slot(device, slice.cloned()));
            self.users[slot].push(place);
            slot
        });
        let slots = slots.collect();
        self.lease.seats.push(self.device_set(place, number, slots));
    }

    fn device_set(&self, place: usize, number: usize, slots: Vec<usize>) -> DeviceSet {
        let role = self.demands.roles[place].role.clone();
        DeviceSet { role, number: u32::try_from(number).unwrap_or(u32::MAX), slots }
    }

    /// Takes a device, or a slice of one, that the job has not had.
    fn add_slot(&mut self, device: DeviceId, slice: Option<Slice>) -> usize {
        let slot = Slot { device, name: self.free.inventory.name(device), slice };
        self.usage.add_slot(&slot, self.free.uid);
        self.lease.slots.push(slot);
        self.users.push(Vec::new());
        self.lease.slots.len() - 1
    }
}

#[cfg(test)]
mod tests;
