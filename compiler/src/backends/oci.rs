//! Backend `oci`: one OCI bundle a task, `<role>-<i>/config.json` and the small files it binds.
//!
//! A bundle is neutral of any machine: its root is absent and named by an annotation, its GPU numbers are logical, and
//! what only a machine knows (image, devices, secrets, fetched data) is put in by `jobc run`, or by hand as docs/oci.md
//! says. config.json is of the runtime specification 1.1.0, which runc 1.1 and crun 1.8 accept.

mod address;
mod annotations;
mod capabilities;
mod config;
mod gpu;
mod image;
mod linux;
mod mounts;
mod process;
mod seccomp;
mod support;
#[cfg(test)]
mod tests;

use jobc_schema::plan::JobPlan;
use jobc_schema::{BackendName, Pointer};

use crate::backend::tasks::tasks;
use crate::backend::{Backend, Capability, Context, File, Support, limits};
use crate::diagnostic::Sink;

/// Writes one OCI bundle a task.
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
        let settings = job.target.settings.oci.as_ref();
        let injection =
            context.gpu_injection.or(settings.map(|settings| settings.gpu_injection)).unwrap_or_default();
        let places = address::Places::new(job);
        let before = sink.error_count();
        limits::check_settings(job, sink);
        address::check_ports(job, &places, sink);
        gpu::check_injection(job, injection, sink);
        for role in &job.roles {
            capabilities::check_names(role, sink);
            mounts::check_nesting(role, sink);
        }
        let tasks = tasks(job, context, sink);
        if sink.error_count() > before {
            return vec![];
        }
        let table = seccomp::table();
        let mut files = vec![];
        for task in tasks {
            let seen = places.seen_by(task);
            files.push(config::config(job, task, &seen, context, injection, &table));
            files.extend(mounts::files(task, &seen));
        }
        files
    }
}
