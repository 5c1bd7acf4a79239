//! Backend `oci`: one OCI bundle per task, `<role>-<i>/config.json` and the small files it binds.
//!
//! A bundle does not depend on a host: its root is absent and named by an annotation, its GPU numbers are logical, and
//! what only a host knows (image, devices, secrets, fetched data) is added by `jobc run`, or by hand as described in
//! docs/reference/oci.md. config.json is of the runtime specification 1.1.0, which runc 1.1 and crun 1.8 accept.

mod address;
mod annotations;
mod capabilities;
mod config;
mod gpu;
mod image;
mod linux;
mod mounts;
mod process;
mod schedule;
mod seccomp;
mod support;
#[cfg(test)]
mod tests;

use jobc_schema::plan::JobPlan;
use jobc_schema::target::GpuInjection;
use jobc_schema::{BackendName, Pointer};

use crate::backend::tasks::{Task, tasks};
use crate::backend::{Backend, Capability, Context, File, Support, limits};
use crate::diagnostic::Sink;

/// Writes one OCI bundle per task.
#[derive(Debug)]
pub struct OciBackend;

impl Backend for OciBackend {
    fn name(&self) -> BackendName {
        BackendName::Oci
    }

    fn about(&self) -> &'static str {
        "one OCI bundle a task"
    }

    fn support(&self, capability: Capability, job: &JobPlan) -> Support {
        support::support(capability, &Pointer::ROOT, job)
    }

    fn support_at(&self, capability: Capability, place: &Pointer, job: &JobPlan) -> Support {
        support::support(capability, place, job)
    }

    fn lower(&self, job: &JobPlan, context: &Context<'_>, sink: &mut Sink) -> Vec<File> {
        let places = address::AddressBook::new(job);
        let injection = injection(job, context);
        let tasks = checked(job, context, &places, sink);
        let is_sent = job.target.settings.is_machine();
        let mut files: Vec<File> = is_sent.then(|| File::code(job, context)).flatten().into_iter().collect();
        for task in tasks {
            let seen = places.for_task(task);
            files.push(config::config(job, task, &seen, context, injection));
            files.extend(mounts::files(task, &seen));
        }
        files.extend(schedule::units(job));
        files
    }

    fn check(&self, job: &JobPlan, context: &Context<'_>, sink: &mut Sink) {
        checked(job, context, &address::AddressBook::new(job), sink);
    }
}

/// The GPU setup in the bundles.
fn injection(job: &JobPlan, context: &Context<'_>) -> GpuInjection {
    let settings = job.target.settings.oci.as_ref();
    context.gpu_injection.or(settings.map(|settings| settings.gpu_injection)).unwrap_or_default()
}

/// The tasks that bundles are written for; none where something is wrong.
fn checked<'a>(
    job: &'a JobPlan,
    context: &Context<'_>,
    places: &address::AddressBook<'_>,
    sink: &mut Sink,
) -> Vec<Task<'a>> {
    let before = sink.error_count();
    limits::check_settings(job, sink);
    address::check_ports(job, places, sink);
    gpu::check_devices(job, sink);
    gpu::check_injection(job, injection(job, context), sink);
    for role in &job.roles {
        capabilities::check_names(role, sink);
        mounts::check_nesting(role, sink);
    }
    let tasks = tasks(job, context, sink);
    if sink.error_count() > before { vec![] } else { tasks }
}
