//! What a job meets on its cluster: the target's settings, the releases, and the kind of object it becomes.

use std::sync::LazyLock;

use indexmap::IndexMap;
use jobc_schema::Pointer;
use jobc_schema::plan::{CommandPlan, EnvPlan, FileContent, JobPlan, ProbePlan, Reference, RolePlan, Text};
use jobc_schema::target::{KubernetesKind, KubernetesTarget};

use super::gpu::sharepod;
use super::policy::restarts_by_jobset;
use super::release::Releases;

/// A job together with what is known of the cluster it goes to.
pub(super) struct Cluster<'a> {
    /// The job.
    pub job: &'a JobPlan,
    /// The target's settings.
    pub settings: &'a KubernetesTarget,
    /// The kind of object the job becomes.
    pub shape: Shape,
    /// The releases the output must fit.
    pub releases: Releases,
    /// The roles by name, for a job may have thousands.
    roles: IndexMap<&'a str, &'a RolePlan>,
}

/// The kind of object a job becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A Job of one pod that nobody needs to find.
    Job,
    /// A Job whose pods have numbers, and a Service that gives them names.
    IndexedJob,
    /// A JobSet with an Indexed Job a role.
    JobSet,
    /// A pod by itself, as an object of the provider of its GPU.
    SharePod,
}

/// The settings of a target that says nothing about Kubernetes.
static DEFAULTS: LazyLock<KubernetesTarget> = LazyLock::new(KubernetesTarget::default);

/// The target's settings for Kubernetes.
pub(super) fn settings(job: &JobPlan) -> &KubernetesTarget {
    job.target.settings.kubernetes.as_ref().unwrap_or(&DEFAULTS)
}

/// The place of a setting in `targets.yaml`.
pub(super) fn setting_at<'k>(job: &JobPlan, keys: impl IntoIterator<Item = &'k str>) -> Pointer {
    Pointer::ROOT.keys(["targets", &job.target.name, "kubernetes"]).keys(keys)
}

impl<'a> Cluster<'a> {
    /// Looks at a job and its target.
    pub(super) fn new(job: &'a JobPlan) -> Self {
        let settings = settings(job);
        Self {
            job,
            settings,
            shape: shape(job),
            releases: Releases::of(settings),
            roles: job.roles.iter().map(|role| (role.name.as_str(), role)).collect(),
        }
    }

    /// The role with that name.
    pub(super) fn role(&self, name: &str) -> Option<&'a RolePlan> {
        self.roles.get(name).copied()
    }

    /// The name of the Job that runs a role.
    pub(super) fn job_name(&self, role: &str) -> String {
        match self.shape {
            Shape::JobSet => format!("{}-{role}-0", self.job.name),
            Shape::Job | Shape::IndexedJob | Shape::SharePod => self.job.name.clone(),
        }
    }
}

/// The kind of object a job becomes: the one its target names, else the simplest that can express the job.
pub(super) fn shape(job: &JobPlan) -> Shape {
    let one_job = || match &job.roles[..] {
        [role] if role.instances == 1 && !needs_addresses(job, role) => Shape::Job,
        _ => Shape::IndexedJob,
    };
    match settings(job).kind {
        KubernetesKind::Auto if sharepod::kind(job).is_some() => Shape::SharePod,
        KubernetesKind::Jobset => Shape::JobSet,
        KubernetesKind::Job => one_job(),
        _ => match &job.roles[..] {
            [role] if !restarts_by_jobset(job, role) => one_job(),
            _ => Shape::JobSet,
        },
    }
}

/// Whether the only instance of a job must be found under a name: the user wrote its address somewhere.
///
/// The variables that jobc provides are no reason; `localhost` serves them in a job of one process.
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
