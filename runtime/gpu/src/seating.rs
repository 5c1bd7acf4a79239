//! Which task has which seat of a job's leased GPUs.
//!
//! Where all instances of a role run at once, task `i` has seat `i` for good, through every attempt. With `parallel`
//! there are fewer seats than tasks: a task takes the one it had before, else the first that is free.

use std::collections::BTreeMap;

use super::lease::{Leased, Seat, Slot};
use jobc_sys::id::TaskId;

/// The assignment of a job's seats to tasks.
#[derive(Clone, Debug, Default)]
pub struct Seating {
    leased: Leased,
    /// The task that has a seat now, by its index in [`Leased::seats`].
    taken: BTreeMap<usize, TaskId>,
    /// Where a task was last.
    last: BTreeMap<TaskId, usize>,
}

impl Seating {
    /// Nobody sits yet.
    pub fn new(leased: Leased) -> Self {
        Self { leased, taken: BTreeMap::new(), last: BTreeMap::new() }
    }

    /// All that the job has.
    pub fn leased(&self) -> &Leased {
        &self.leased
    }

    /// Gives a task its seat; nothing if its role has none. A task that has one keeps it.
    pub fn take(&mut self, task: &TaskId) -> Vec<Slot> {
        let is_free = |seat: &usize| self.taken.get(seat).is_none_or(|other| other == task);
        let of_role: Vec<usize> = self.places(&task.role).collect();
        let own = of_role.iter().copied().find(|seat| self.taken.get(seat) == Some(task));
        let before = self.last.get(task).copied().filter(is_free);
        let numbered = of_role.iter().copied().find(|&seat| self.leased.seats[seat].number == task.index);
        let any = || of_role.iter().copied().find(is_free);
        let Some(seat) = own.or(before).or(numbered.filter(is_free)).or_else(any) else { return Vec::new() };
        self.taken.insert(seat, task.clone());
        self.last.insert(task.clone(), seat);
        self.leased.of(&self.leased.seats[seat]).cloned().collect()
    }

    /// What a task has now.
    pub fn of(&self, task: &TaskId) -> Vec<Slot> {
        let own = self.taken.iter().find(|(_, other)| *other == task);
        own.map(|(&seat, _)| self.leased.of(&self.leased.seats[seat]).cloned().collect()).unwrap_or_default()
    }

    /// A task's attempt is over and all that it had is removed.
    pub fn leave(&mut self, task: &TaskId) {
        self.taken.retain(|_, other| other != task);
    }

    fn places(&self, role: &str) -> impl Iterator<Item = usize> {
        let is_of = move |(_, seat): &(usize, &Seat)| seat.role == role;
        self.leased.seats.iter().enumerate().filter(is_of).map(|(place, _)| place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::DeviceId;

    fn seating(seats: &[(&str, u32)]) -> Seating {
        let device = |gpu| DeviceId { vendor: jobc_schema::gpu::Vendor::Nvidia, gpu, mig: None };
        let slots = (0..seats.len()).map(|n| u32::try_from(n).unwrap());
        let slots = slots.map(|gpu| Slot { device: device(gpu), name: gpu.to_string(), slice: None });
        let seats = seats.iter().enumerate().map(|(slot, (role, number))| Seat {
            role: (*role).to_owned(),
            number: *number,
            slots: vec![slot],
        });
        Seating::new(Leased { slots: slots.collect(), seats: seats.collect() })
    }

    fn gpus(seating: &mut Seating, task: &TaskId) -> Vec<u32> {
        seating.take(task).iter().map(|slot| slot.device.gpu).collect()
    }

    #[test]
    fn tasks_have_the_seat_of_their_number_through_every_attempt() {
        let mut seating = seating(&[("b", 0), ("a", 0), ("a", 1)]);
        let (first, second) = (TaskId::new("a", 0), TaskId::new("a", 1));
        assert_eq!(gpus(&mut seating, &second), [2]);
        assert_eq!(gpus(&mut seating, &first), [1]);
        seating.leave(&first);
        seating.leave(&second);
        assert_eq!(gpus(&mut seating, &first), [1]);
        assert_eq!(gpus(&mut seating, &first), [1]);
        assert!(gpus(&mut seating, &TaskId::new("c", 0)).is_empty());
    }

    #[test]
    fn many_tasks_take_few_seats_in_turns() {
        let mut seating = seating(&[("a", 0), ("a", 1)]);
        let task = |index| TaskId::new("a", index);
        assert_eq!(gpus(&mut seating, &task(5)), [0]);
        assert_eq!(gpus(&mut seating, &task(0)), [1]);
        // There is none: no other assignment is used.
        assert!(gpus(&mut seating, &task(1)).is_empty());
        seating.leave(&task(5));
        assert_eq!(gpus(&mut seating, &task(1)), [0]);
        seating.leave(&task(0));
        seating.leave(&task(1));
        // Each is returned to its place.
        assert_eq!(gpus(&mut seating, &task(0)), [1]);
        assert_eq!(gpus(&mut seating, &task(1)), [0]);
    }
}
