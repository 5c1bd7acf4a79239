//! The devices of a job's tasks, and how they come in.

use indexmap::IndexMap;
use jobc_schema::gpu::DriverCapability;
use jobc_schema::plan::JobPlan;
use oci_spec::runtime::Spec;

use super::{Injected, Injector, Wants, Way, environment};
use crate::bundle::Bundle;
use crate::error::Result;
use crate::gpu::{DeviceId, requires};
use crate::job::TaskId;
use crate::job::submission::Submission;
use crate::root::Root;

/// The devices of a job's tasks.
#[derive(Debug)]
pub struct JobDevices {
    injector: Injector,
    way: Way,
    /// What of the driver the tasks of a role use.
    capabilities: IndexMap<String, Vec<DriverCapability>>,
    /// The tasks that have devices.
    tasks: Vec<(TaskId, Vec<DeviceId>)>,
}

impl JobDevices {
    /// What was leased for the tasks of a job.
    pub fn new(
        plan: &JobPlan,
        submission: &Submission,
        injector: Injector,
        tasks: Vec<(TaskId, Vec<DeviceId>)>,
    ) -> Self {
        let of_target = plan.target.settings.oci.as_ref().map(|oci| Way::of_target(oci.gpu_injection));
        let capabilities = plan
            .roles
            .iter()
            .filter_map(|role| Some((role.name.clone(), role.resources.gpu.as_ref()?.capabilities.clone())));
        Self {
            injector,
            way: submission.gpu_injection.or(of_target).unwrap_or_default(),
            capabilities: capabilities.collect(),
            tasks,
        }
    }

    /// The devices of a task.
    pub fn of(&self, task: &TaskId) -> &[DeviceId] {
        self.tasks
            .iter()
            .find(|(id, _)| id == task)
            .map(|(_, devices)| devices.as_slice())
            .unwrap_or_default()
    }

    /// The injector, for what else wants to know of the devices.
    pub fn injector(&self) -> &Injector {
        &self.injector
    }

    /// Gives a task its devices.
    ///
    /// # Errors
    ///
    /// As of [`Injector::inject`] and [`requires::check`].
    pub fn give(
        &self,
        task: &TaskId,
        spec: &mut Spec,
        root: &Root,
        visible: Option<&str>,
    ) -> Result<Injected> {
        let wants = Wants {
            capabilities: self.capabilities.get(&task.role).map(Vec::as_slice).unwrap_or_default(),
            injection: self.way,
            machine_root: is_machine_root(root),
            visible,
        };
        let environment = spec.process().as_ref().and_then(|process| process.env().as_deref());
        requires::check(environment.unwrap_or_default(), self.injector.inventory(), self.of(task))?;
        self.injector.inject(spec, self.of(task), &wants)
    }
}

/// Whether a root is the machine's own files.
pub fn is_machine_root(root: &Root) -> bool {
    root.folders() == [std::path::Path::new("/")]
}

/// The value of `NVIDIA_VISIBLE_DEVICES` in a bundle that the job's author wrote: not one that the bundle has from its
/// `resources.gpu`.
pub fn visible_by_author(bundle: &Bundle) -> Option<String> {
    let value = environment::value(&bundle.config.spec, environment::VISIBLE)?;
    let numbers = bundle.annotation("dev.jobc.gpus");
    (value != "void" && Some(value) != numbers).then(|| value.to_owned())
}

/// Says in a container without devices that there are none.
pub fn hide_all(spec: &mut Spec, visible: Option<&str>) {
    environment::hide_all(spec, visible);
}
