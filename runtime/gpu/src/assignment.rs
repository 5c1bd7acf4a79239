//! Assigns the seats of a job's leased GPUs to tasks.
//!
//! Where all instances of a role run at once, task `i` has seat `i` for good, through every attempt. With `parallel`
//! there are fewer seats than tasks: a task takes the one it had before, or else the first free one. The same applies
//! to the combinations of a matrix with a limit on how many run at once.

use std::collections::BTreeMap;

use super::lease::{DeviceSet, GpuLease, Slot};
use jobc_sys::id::TaskId;

/// The assignment of a job's seats to tasks.
#[derive(Clone, Debug, Default)]
pub struct Assignments {
    lease: GpuLease,
    /// Roles that have the seats of another name, by role: combinations that take turns.
    turns: BTreeMap<String, String>,
    /// The task that has a seat now, by its index in [`GpuLease::seats`].
    current: BTreeMap<usize, TaskId>,
    /// Where a task was last.
    previous: BTreeMap<TaskId, usize>,
}

impl Assignments {
    /// No task has devices yet. `turns` are roles that have the seats of another name.
    pub fn new(leased: GpuLease, turns: BTreeMap<String, String>) -> Self {
        Self { lease: leased, turns, current: BTreeMap::new(), previous: BTreeMap::new() }
    }

    /// All that the job has.
    pub fn lease(&self) -> &GpuLease {
        &self.lease
    }

    /// Gives a task its seat; `None` if its role has no GPUs. A task keeps its seat.
    pub fn assign(&mut self, task: &TaskId) -> Vec<Slot> {
        let is_free = |seat: &usize| self.current.get(seat).is_none_or(|other| other == task);
        let role = self.turns.get(&task.role).unwrap_or(&task.role);
        let of_role: Vec<usize> = self.sets_of_role(role).collect();
        let own = of_role.iter().copied().find(|seat| self.current.get(seat) == Some(task));
        let before = self.previous.get(task).copied().filter(is_free);
        let numbered = of_role.iter().copied().find(|&seat| self.lease.seats[seat].number == task.index);
        let any = || of_role.iter().copied().find(is_free);
        let Some(seat) = own.or(before).or(numbered.filter(is_free)).or_else(any) else { return Vec::new() };
        self.current.insert(seat, task.clone());
        self.previous.insert(task.clone(), seat);
        self.lease.slots_of(&self.lease.seats[seat]).cloned().collect()
    }

    /// The current devices of a task.
    pub fn slots_of(&self, task: &TaskId) -> Vec<Slot> {
        let own = self.current.iter().find(|(_, other)| *other == task);
        own.map(|(&seat, _)| self.lease.slots_of(&self.lease.seats[seat]).cloned().collect())
            .unwrap_or_default()
    }

    /// A task's attempt is over and all that it had is removed.
    pub fn release(&mut self, task: &TaskId) {
        self.current.retain(|_, other| other != task);
    }

    fn sets_of_role(&self, role: &str) -> impl Iterator<Item = usize> {
        let is_of = move |(_, seat): &(usize, &DeviceSet)| seat.role == role;
        self.lease.seats.iter().enumerate().filter(is_of).map(|(place, _)| place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::DeviceId;

    fn assignments(seats: &[(&str, u32)]) -> Assignments {
        let device = |gpu| DeviceId { vendor: jobc_schema::gpu::Vendor::Nvidia, gpu, mig: None };
        let slots = (0..seats.len()).map(|n| u32::try_from(n).unwrap());
        let slots = slots.map(|gpu| Slot { device: device(gpu), name: gpu.to_string(), slice: None });
        let seats = seats.iter().enumerate().map(|(slot, (role, number))| DeviceSet {
            role: (*role).to_owned(),
            number: *number,
            slots: vec![slot],
        });
        let turns = [("t-m0", "t"), ("t-m1", "t"), ("t-m2", "t")]
            .map(|(role, name)| (role.to_owned(), name.to_owned()));
        Assignments::new(GpuLease { slots: slots.collect(), seats: seats.collect() }, turns.into())
    }

    fn gpus(assignments: &mut Assignments, task: &TaskId) -> Vec<u32> {
        assignments.assign(task).iter().map(|slot| slot.device.gpu).collect()
    }

    #[test]
    fn tasks_have_the_seat_of_their_number_through_every_attempt() {
        let mut assignments = assignments(&[("b", 0), ("a", 0), ("a", 1)]);
        let (first, second) = (TaskId::new("a", 0), TaskId::new("a", 1));
        assert_eq!(gpus(&mut assignments, &second), [2]);
        assert_eq!(gpus(&mut assignments, &first), [1]);
        assignments.release(&first);
        assignments.release(&second);
        assert_eq!(gpus(&mut assignments, &first), [1]);
        assert_eq!(gpus(&mut assignments, &first), [1]);
        assert!(gpus(&mut assignments, &TaskId::new("c", 0)).is_empty());
    }

    #[test]
    fn many_tasks_take_few_seats_in_turns() {
        let mut assignments = assignments(&[("a", 0), ("a", 1)]);
        let task = |index| TaskId::new("a", index);
        assert_eq!(gpus(&mut assignments, &task(5)), [0]);
        assert_eq!(gpus(&mut assignments, &task(0)), [1]);
        // There is none: no other assignment is used.
        assert!(gpus(&mut assignments, &task(1)).is_empty());
        assignments.release(&task(5));
        assert_eq!(gpus(&mut assignments, &task(1)), [0]);
        assignments.release(&task(0));
        assignments.release(&task(1));
        // Each is returned to its place.
        assert_eq!(gpus(&mut assignments, &task(0)), [1]);
        assert_eq!(gpus(&mut assignments, &task(1)), [0]);
    }
    #[test]
    fn combinations_take_the_seats_of_their_role_in_turns() {
        let mut assignments = assignments(&[("t", 0), ("t", 1)]);
        let task = |number| TaskId::new(format!("t-m{number}"), 0);
        assert_eq!([gpus(&mut assignments, &task(2)), gpus(&mut assignments, &task(0))], [[0], [1]]);
        assert!(gpus(&mut assignments, &task(1)).is_empty());
        assignments.release(&task(0));
        assert_eq!(gpus(&mut assignments, &task(1)), [1]);
    }
}
