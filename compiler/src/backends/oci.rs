//! Backend `oci`: one OCI bundle a task.

use jobc_schema::BackendName;
use jobc_schema::plan::JobPlan;

use crate::backend::{Backend, Capability, Context, File, Support};
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

    fn support(&self, _capability: Capability, _job: &JobPlan) -> Support {
        Support::Full
    }

    fn lower(&self, _job: &JobPlan, _context: &Context<'_>, _sink: &mut Sink) -> Vec<File> {
        vec![]
    }
}
