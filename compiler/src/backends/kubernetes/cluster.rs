//! What a job meets on its cluster: the target's settings, the releases, and the kind of object it becomes.

use indexmap::IndexMap;
use jobc_schema::plan::{JobPlan, RolePlan};
use jobc_schema::target::KubernetesTarget;

use super::release::Releases;
use super::settings::settings;
use super::shape::{Shape, shape};

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
