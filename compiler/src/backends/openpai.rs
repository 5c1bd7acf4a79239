//! Backend `openpai`: an OpenPAI protocol v2 job.

use jobc_schema::BackendName;
use jobc_schema::plan::JobPlan;

use crate::backend::{Backend, Capability, Context, File, Support};
use crate::diagnostic::Sink;

/// Writes an OpenPAI protocol v2 job.
#[derive(Debug)]
pub struct OpenpaiBackend;

impl Backend for OpenpaiBackend {
    fn name(&self) -> BackendName {
        BackendName::Openpai
    }

    fn about(&self) -> &'static str {
        "an OpenPAI protocol v2 job"
    }

    fn support(&self, _capability: Capability, _job: &JobPlan) -> Support {
        Support::Full
    }

    fn lower(&self, _job: &JobPlan, _context: &Context<'_>, _sink: &mut Sink) -> Vec<File> {
        vec![]
    }
}
