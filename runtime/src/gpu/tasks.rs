//! Gives the tasks of a job what the job has of the machine's GPUs.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jobc_schema::gpu::DriverCapability;
use jobc_schema::plan::{EnvPlan, JobPlan};
use oci_spec::runtime::Spec;

use super::demand::Demands;
use super::inject::{Injector, Wants, Way};
use super::lease::{Leased, Slot};
use super::seating::Seating;
use super::share::Served;
use super::sharing::Means;
use super::{DeviceId, Inventory, Machine};
use crate::admission;
use crate::error::{Error, Kind, Result};
use crate::job::TaskId;
use crate::job::submission::Submission;

/// What the tasks of a job share of the machine's GPUs.
#[derive(Debug)]
pub struct TaskGpus {
    injector: Injector,
    seating: Mutex<Seating>,
    served: Served,
    roles: BTreeMap<String, RoleWants>,
    way: Way,
}

/// What a role says of its GPUs beside how many.
#[derive(Debug, Default)]
struct RoleWants {
    count: u32,
    capabilities: Vec<DriverCapability>,
    /// What the author wrote for `NVIDIA_VISIBLE_DEVICES`.
    visible: Option<String>,
}

impl TaskGpus {
    /// For a job that has these; what serves its slices runs by now.
    pub fn new(
        machine: Machine,
        inventory: Inventory,
        plan: &JobPlan,
        leased: Leased,
        served: Served,
        way: Way,
    ) -> Self {
        let wants = |role: &jobc_schema::plan::RolePlan| {
            let gpu = role.resources.gpu.as_ref();
            let visible = role.env.get("NVIDIA_VISIBLE_DEVICES").and_then(written);
            RoleWants {
                count: gpu.map_or(0, |gpu| gpu.count),
                capabilities: gpu.map(|gpu| gpu.capabilities.clone()).unwrap_or_default(),
                visible,
            }
        };
        let roles = plan.roles.iter().map(|role| (role.name.clone(), wants(role))).collect();
        let injector = Injector::new(machine, inventory);
        Self { injector, seating: Mutex::new(Seating::new(leased)), served, roles, way }
    }

    /// For a look at what would be done: as on this machine with nobody else's jobs, and nothing is started.
    ///
    /// # Errors
    ///
    /// What the job asks for is not there.
    pub fn rehearse(plan: &JobPlan, submission: &Submission, inventory: Inventory) -> Result<Self> {
        let machine = Machine::here();
        let means = Means::of(&machine, &inventory);
        let demands = Demands::of(plan, submission, &inventory, &means)?;
        let leased = admission::alone(plan, &demands, &inventory)?;
        let way = submission.gpu_injection.unwrap_or_default();
        Ok(Self::new(machine, inventory, plan, leased, Served::default(), way))
    }

    /// Gives a task its devices: exactly those of its seat, none where its role asks for none. `machine_root` says that its
    /// root is this machine's own files. Returns what a person should know, a line each.
    ///
    /// The configuration must be complete but for them.
    ///
    /// # Errors
    ///
    /// A device that is gone, or cannot be brought in.
    pub fn give(&self, task: &TaskId, spec: &mut Spec, machine_root: bool) -> Result<Vec<String>> {
        let nothing = RoleWants::default();
        let role = self.roles.get(&task.role).unwrap_or(&nothing);
        let slots = if role.count > 0 { self.seating().take(task) } else { Vec::new() };
        if slots.is_empty() && role.count > 0 {
            return Err(Error::new(
                Kind::State,
                format!("`{task}` has no GPU of those that its job was given"),
            ));
        }
        let devices: Vec<DeviceId> = slots.iter().map(|slot| slot.device).collect();
        let wants = Wants {
            capabilities: &role.capabilities,
            injection: self.way,
            machine_root,
            visible: role.visible.as_deref(),
        };
        let mut said = self.injector.inject(spec, &devices, &wants)?.said;
        said.extend(self.served.give(spec, &slots)?);
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

/// The text of a variable that is one.
fn written(value: &EnvPlan) -> Option<String> {
    match value {
        EnvPlan::Text(text) => text.as_literal().map(str::to_owned),
        EnvPlan::Secret { .. } => None,
    }
}
