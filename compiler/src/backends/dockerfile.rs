//! Backend `dockerfile`: Dockerfiles of the images a job builds.

use jobc_schema::BackendName;
use jobc_schema::plan::JobPlan;

use crate::backend::{Backend, Capability, Context, File, Support};
use crate::diagnostic::Sink;

/// Writes Dockerfiles of the images a job builds.
#[derive(Debug)]
pub struct DockerfileBackend;

impl Backend for DockerfileBackend {
    fn name(&self) -> BackendName {
        BackendName::Dockerfile
    }

    fn about(&self) -> &'static str {
        "Dockerfiles of the images a job builds"
    }

    fn support(&self, _capability: Capability, _job: &JobPlan) -> Support {
        Support::Full
    }

    fn lower(&self, _job: &JobPlan, _context: &Context<'_>, _sink: &mut Sink) -> Vec<File> {
        vec![]
    }
}
