//! The kind of object a job becomes.

use jobc_schema::plan::{CommandPlan, EnvPlan, FileContent, JobPlan, ProbePlan, Reference, RolePlan, Text};
use jobc_schema::role::{Disruptions, RetryScope};
use jobc_schema::target::KubernetesKind;

use super::gpu::object_kind;
use super::settings::settings;

/// The kind of object a job becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A Pod.
    Pod,
    /// A Job of one pod that needs no address.
    Job,
    /// A Job whose pods have numbers, and a Service that gives them names.
    IndexedJob,
    /// A JobSet with an Indexed Job a role.
    JobSet,
    /// A TrainJob of Kubeflow Trainer, which makes a JobSet.
    TrainJob,
    /// A Volcano Job.
    Volcano,
    /// An MPIJob.
    MpiJob,
    /// A RayJob.
    RayJob,
    /// A LeaderWorkerSet.
    LeaderWorkerSet,
    /// A single pod, as an object of the provider of its GPU.
    SharePod,
}

impl Shape {
    /// Whether a JobSet runs the job: the job's own object, or that which Kubeflow Trainer makes.
    pub(super) fn is_jobset(self) -> bool {
        matches!(self, Self::JobSet | Self::TrainJob)
    }

    /// Whether the job is one pod that has no address.
    pub(super) fn is_lone_pod(self) -> bool {
        matches!(self, Self::Pod | Self::Job | Self::SharePod)
    }
}

/// The kind of object for a job: the one that its target names, else the simplest that can express the job.
pub(super) fn shape(job: &JobPlan) -> Shape {
    let one_job = || match &job.roles[..] {
        [role] if role.instances == 1 && !needs_addresses(job, role) => Shape::Job,
        _ => Shape::IndexedJob,
    };
    match settings(job).kind {
        KubernetesKind::Auto if object_kind(job).is_some() => Shape::SharePod,
        KubernetesKind::Jobset => Shape::JobSet,
        KubernetesKind::Job => one_job(),
        KubernetesKind::Pod => Shape::Pod,
        KubernetesKind::Trainjob => Shape::TrainJob,
        KubernetesKind::Volcano => Shape::Volcano,
        KubernetesKind::Mpijob => Shape::MpiJob,
        KubernetesKind::Rayjob => Shape::RayJob,
        KubernetesKind::Leaderworkerset => Shape::LeaderWorkerSet,
        KubernetesKind::Auto | KubernetesKind::Pytorchjob | KubernetesKind::Tfjob => match &job.roles[..] {
            [role] if !restarts_by_jobset(job, role) => one_job(),
            _ => Shape::JobSet,
        },
    }
}

/// Whether the only instance of a job needs a name: the user wrote its address somewhere.
///
/// The variables that jobc provides do not need one: they are `localhost` in a job of one process.
fn needs_addresses(job: &JobPlan, role: &RolePlan) -> bool {
    let command: Vec<&Text> = match &role.command {
        CommandPlan::Image {} => vec![],
        CommandPlan::Args(args) => args.iter().collect(),
        CommandPlan::Argv { argv, setup } => argv.iter().chain(setup).collect(),
        CommandPlan::Script { setup, script, .. } => setup.iter().chain([script]).collect(),
    };
    let env = role.env.values().filter_map(|v| if let EnvPlan::Text(text) = v { Some(text) } else { None });
    let files = role
        .files
        .iter()
        .filter_map(|file| if let FileContent::Text(text) = &file.content { Some(text) } else { None });
    let probe = role.ready.iter().filter_map(|ready| match &ready.probe {
        ProbePlan::Exec(argv) => Some(argv),
        _ => None,
    });
    job.distributed.as_ref().is_some_and(|d| d.ssh.is_some())
        || command
            .into_iter()
            .chain(env)
            .chain(files)
            .chain(probe.flatten())
            .flat_map(Text::references)
            .any(|r| matches!(r, Reference::Host { .. } | Reference::Hosts { .. }))
}

/// Whether the JobSet retries a role, instead of the role's own Job.
///
/// If only one instance is retried, the Job does it, regardless of the scope.
pub(super) fn restarts_by_jobset(job: &JobPlan, role: &RolePlan) -> bool {
    let covers_more = match role.retry.scope {
        RetryScope::Task => false,
        RetryScope::Role => role.instances > 1,
        RetryScope::Job => role.instances > 1 || job.roles.len() > 1,
    };
    (role.retry.max > 0 || role.retry.disruptions == Disruptions::Ignore) && covers_more
}
