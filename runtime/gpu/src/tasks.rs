//! Gives the tasks of a job what the job has of the host's GPUs.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jobc_schema::Bytes;
use jobc_schema::plan::{GpuPlan, JobPlan};
use oci_spec::runtime::Spec;

use super::assignment::Assignments;
use super::enforcement::SliceEnforcer;
use super::held_memory;
use super::inject::{InjectionMethod, InjectionRequest, Injector, is_host_root};
use super::inventory::DeviceId;
use super::lease::{GpuLease, Slot};
use jobc_container::root::Root;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::id::TaskId;

/// The GPUs of the host that the tasks of a job share.
#[derive(Debug)]
pub struct TaskGpus {
    injector: Injector,
    assignments: Mutex<Assignments>,
    enforcer: Mutex<SliceEnforcer>,
    /// A role's specification of its GPUs.
    roles: BTreeMap<String, GpuPlan>,
    method: InjectionMethod,
}

impl TaskGpus {
    /// For a job that has these; what serves its slices runs by now.
    pub fn new(
        plan: &JobPlan,
        injection: Option<InjectionMethod>,
        injector: Injector,
        leased: GpuLease,
        served: SliceEnforcer,
    ) -> Self {
        let of_target =
            plan.target.settings.oci.as_ref().map(|oci| InjectionMethod::from_target(oci.gpu_injection));
        let way = injection.or(of_target).unwrap_or_default();
        // The combinations of a role that take turns have the seats of the role.
        let has_seats = |name: &str| leased.seats.iter().any(|seat| seat.role == name);
        let turns = plan.roles.iter().filter(|role| role.matrix.is_some() && has_seats(role.declared()));
        let turns = turns.map(|role| (role.name.clone(), role.declared().to_owned())).collect();
        let roles = plan.roles.iter();
        let roles = roles.filter_map(|role| Some((role.name.clone(), role.resources.gpu.clone()?))).collect();
        Self {
            injector,
            assignments: Mutex::new(Assignments::new(leased, turns)),
            enforcer: Mutex::new(served),
            roles,
            method: way,
        }
    }

    /// Gives a task its devices: exactly those of its seat, none if its role requests none. Returns notes for the user,
    /// one per line.
    ///
    /// The configuration must be complete except for them; `visible` is what its author wrote for
    /// `NVIDIA_VISIBLE_DEVICES`.
    ///
    /// # Errors
    ///
    /// A device that no longer exists or cannot be added to the container.
    pub fn inject(
        &self,
        task: &TaskId,
        spec: &mut Spec,
        root: &Root,
        visible: Option<&str>,
    ) -> Result<Vec<String>> {
        let role = self.roles.get(&task.role).filter(|role| role.count > 0);
        let slots = role.map(|_| self.assignments().assign(task)).unwrap_or_default();
        if slots.is_empty() && role.is_some() {
            let message = format!("no GPU of the job is assigned to `{task}`");
            return Err(Error::new(Kind::State, message));
        }
        let devices: Vec<DeviceId> = slots.iter().map(|slot| slot.device).collect();
        let wants = InjectionRequest {
            capabilities: role.map(|role| role.capabilities.as_slice()).unwrap_or_default(),
            injection: self.method,
            host_root: is_host_root(root),
            visible,
        };
        let mut notes = self.injector.inject(spec, &devices, &wants)?.notes;
        notes.extend(self.enforcer().configure(spec, &slots));
        Ok(notes)
    }

    /// Waits, for a while, until the whole cards of a task have the memory that an attempt before has used; returns a note
    /// for the user if they do not.
    pub fn wait_for_memory(&self, task: &TaskId, stopped: &AtomicBool) -> Option<String> {
        let whole = self.slots_of(task).into_iter().filter(|slot| slot.slice.is_none());
        let cards: Vec<String> = whole.map(|slot| slot.name).collect();
        if cards.is_empty() {
            return None;
        }
        let held = held_memory::wait(self.injector.host(), &cards, stopped)?;
        Some(format!(
            "{} of a GPU are still in use by processes of before, which `nvidia-smi` shows",
            Bytes(held).measured()
        ))
    }

    /// The current devices of a task.
    pub fn slots_of(&self, task: &TaskId) -> Vec<Slot> {
        self.assignments().slots_of(task)
    }

    /// A task's attempt has ended, and its devices are released.
    pub fn release(&self, task: &TaskId) {
        self.assignments().release(task);
    }

    /// The job has no devices until [`replace`](Self::replace): none of its tasks runs.
    pub fn give_back(&self) {
        *self.assignments() = Assignments::default();
        // It ends what served its slices.
        *self.enforcer() = SliceEnforcer::default();
    }

    /// The job has others now.
    pub fn replace(&self, other: Self) {
        let Self { assignments, enforcer, .. } = other;
        *self.assignments() = assignments.into_inner().unwrap_or_else(PoisonError::into_inner);
        *self.enforcer() = enforcer.into_inner().unwrap_or_else(PoisonError::into_inner);
    }

    fn enforcer(&self) -> MutexGuard<'_, SliceEnforcer> {
        self.enforcer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn assignments(&self) -> MutexGuard<'_, Assignments> {
        self.assignments.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
