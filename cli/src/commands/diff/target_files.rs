//! The files that are compared.

use jobc_compiler::compile::Artifact;

/// The files of one target of a job.
pub(super) struct TargetFiles {
    pub job: String,
    pub target: String,
    pub artifacts: Vec<Artifact>,
}
