//! Gives the tasks of a job what the job has of the host's GPUs.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jobc_schema::plan::{GpuPlan, JobPlan};
use oci_spec::runtime::Spec;

use super::inject::{Injector, Wants, Way, is_machine_root};
use super::inventory::DeviceId;
use super::lease::{Leased, Slot};
use super::seating::Seating;
use super::share::Served;
use jobc_container::root::Root;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::id::TaskId;

/// What the tasks of a job share of the host's GPUs.
#[derive(Debug)]
pub struct TaskGpus {
    injector: Injector,
    seating: Mutex<Seating>,
    served: Served,
    /// A role's specification of its GPUs.
    roles: BTreeMap<String, GpuPlan>,
    way: Way,
}

impl TaskGpus {
    /// For a job that has these; what serves its slices runs by now.
    pub fn new(
        plan: &JobPlan,
        injection: Option<Way>,
        injector: Injector,
        leased: Leased,
        served: Served,
    ) -> Self {
        let of_target = plan.target.settings.oci.as_ref().map(|oci| Way::of_target(oci.gpu_injection));
        let way = injection.or(of_target).unwrap_or_default();
        let roles = plan.roles.iter();
        let roles = roles.filter_map(|role| Some((role.name.clone(), role.resources.gpu.clone()?))).collect();
        Self { injector, seating: Mutex::new(Seating::new(leased)), served, roles, way }
    }

    /// Gives a task its devices: exactly those of its seat, none if its role requests none. Returns notes for the user,
    /// one per line.
    ///
    /// The configuration must be complete but for them; `visible` is what its author wrote for
    /// `NVIDIA_VISIBLE_DEVICES`.
    ///
    /// # Errors
    ///
    /// A device that is gone, or cannot be brought in.
    pub fn give(
        &self,
        task: &TaskId,
        spec: &mut Spec,
        root: &Root,
        visible: Option<&str>,
    ) -> Result<Vec<String>> {
        let role = self.roles.get(&task.role).filter(|role| role.count > 0);
        let slots = role.map(|_| self.seating().take(task)).unwrap_or_default();
        if slots.is_empty() && role.is_some() {
            let message = format!("no GPU of the job is assigned to `{task}`");
            return Err(Error::new(Kind::State, message));
        }
        let devices: Vec<DeviceId> = slots.iter().map(|slot| slot.device).collect();
        let wants = Wants {
            capabilities: role.map(|role| role.capabilities.as_slice()).unwrap_or_default(),
            injection: self.way,
            machine_root: is_machine_root(root),
            visible,
        };
        let mut said = self.injector.inject(spec, &devices, &wants)?.said;
        said.extend(self.served.give(spec, &slots));
        Ok(said)
    }

    /// What a task has now.
    pub fn of(&self, task: &TaskId) -> Vec<Slot> {
        self.seating().of(task)
    }

    /// A task's attempt is over, and what it had is removed.
    pub fn leave(&self, task: &TaskId) {
        self.seating().leave(task);
    }

    fn seating(&self) -> MutexGuard<'_, Seating> {
        self.seating.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
