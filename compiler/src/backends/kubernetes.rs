//! Backend `kubernetes`: Kubernetes manifests.

use jobc_schema::BackendName;
use jobc_schema::plan::JobPlan;

use crate::backend::{Backend, Capability, Context, File, Support};
use crate::diagnostic::Sink;

/// Writes Kubernetes manifests.
#[derive(Debug)]
pub struct KubernetesBackend;

impl Backend for KubernetesBackend {
    fn name(&self) -> BackendName {
        BackendName::Kubernetes
    }

    fn about(&self) -> &'static str {
        "Kubernetes manifests"
    }

    fn support(&self, _capability: Capability, _job: &JobPlan) -> Support {
        Support::Full
    }

    fn lower(&self, _job: &JobPlan, _context: &Context<'_>, _sink: &mut Sink) -> Vec<File> {
        vec![]
    }
}
