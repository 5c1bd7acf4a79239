//! The names and labels that the controllers of other kinds give to pods.

use jobc_schema::plan::{JobPlan, Launch, Reference, RolePlan, Text};

use super::shape::Shape;

/// The label of Volcano with the name of the Job.
pub(super) const VOLCANO_JOB: &str = "volcano.sh/job-name";
/// The label of Volcano with the name of the task.
pub(super) const VOLCANO_TASK: &str = "volcano.sh/task-spec";
/// The label of the MPI Operator with the name of the MPIJob.
pub(super) const MPI_JOB: &str = "training.kubeflow.org/job-name";
/// The label of the MPI Operator with the part of a pod.
pub(super) const MPI_ROLE: &str = "training.kubeflow.org/job-role";
/// The label with the name of a LeaderWorkerSet.
pub(super) const LWS_NAME: &str = "leaderworkerset.sigs.k8s.io/name";
/// The label of jobc with the name of a RayJob, because KubeRay chooses the names of its pods.
pub(super) const RAY_JOB: &str = "jobc.dev/name";
/// The label of a replicated job with its part in a TrainJob.
pub(super) const TRAINJOB_STEP: &str = "trainer.kubeflow.org/trainjob-ancestor-step";
/// The container name that Kubeflow Trainer's webhook requires for the role that trains.
pub(super) const TRAINJOB_CONTAINER: &str = "node";

/// The field of a pod in which the controller keeps its number.
pub(super) fn index_field(shape: Shape) -> &'static str {
    match shape {
        Shape::Volcano => "metadata.labels['volcano.sh/task-index']",
        Shape::MpiJob => "metadata.labels['training.kubeflow.org/replica-index']",
        Shape::LeaderWorkerSet => "metadata.labels['leaderworkerset.sigs.k8s.io/worker-index']",
        _ => "metadata.annotations['batch.kubernetes.io/job-completion-index']",
    }
}

/// The MPI Operator's name for a role.
pub(super) fn mpi_part(role: &RolePlan) -> &'static str {
    if role.launch == Launch::None { "worker" } else { "launcher" }
}

/// The role of a TrainJob that trains: the largest of the rendezvous, else of all.
pub(super) fn trainer(job: &JobPlan) -> Option<&RolePlan> {
    let members = job.distributed.iter().flat_map(|distributed| &distributed.members);
    let members = members.rev().filter_map(|member| job.role(&member.role));
    let largest = members.max_by_key(|role| role.instances);
    largest.or_else(|| job.roles.iter().rev().max_by_key(|role| role.instances))
}

/// Whether a RayJob cannot express a text, because it refers to pods or their indexes.
pub(super) fn is_unknown_to_ray(role: &RolePlan, text: &Text) -> bool {
    text.references().any(|reference| match reference {
        Reference::Host { .. } | Reference::Hosts { .. } => true,
        Reference::Index {} | Reference::Rank { .. } => role.instances > 1,
        _ => false,
    })
}

/// Whether a text has the number of the instance that reads it.
pub(super) fn has_number(text: &Text) -> bool {
    text.references().any(|reference| matches!(reference, Reference::Index {} | Reference::Rank { .. }))
}
