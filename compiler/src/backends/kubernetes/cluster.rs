//! The cluster of a job: the target's settings, the releases, and the kind of object it becomes.

use indexmap::IndexMap;
use jobc_schema::Pointer;
use jobc_schema::plan::{JobPlan, RolePlan};
use jobc_schema::target::KubernetesTarget;

use super::kinds::{Kind, kind_of};
use super::naming::mpi_part;
use super::release::Releases;
use super::settings::settings;
use super::shape::{Shape, shape};

/// A job with the known facts about its cluster.
pub(super) struct Cluster<'a> {
    /// The job.
    pub job: &'a JobPlan,
    /// The target's settings.
    pub settings: &'a KubernetesTarget,
    /// The kind of object the job becomes.
    pub shape: Shape,
    /// The releases the output must fit.
    pub releases: Releases,
    /// The roles by name, because a job may have thousands.
    roles: IndexMap<&'a str, &'a RolePlan>,
}

impl<'a> Cluster<'a> {
    /// The time after which the job is ended, and why: its `timeout`, or when its budget is used up.
    pub(super) fn deadline(&self) -> Option<(u64, Pointer)> {
        let at = |key: &str| Pointer::ROOT.key(key);
        let timeout = self.job.timeout_seconds.map(|seconds| (seconds, at("timeout")));
        let budget = self.job.budget_seconds().map(|seconds| (seconds, at("budget")));
        timeout.into_iter().chain(budget).min_by_key(|(seconds, _)| *seconds)
    }

    /// Collects the facts about a job and its target.
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

    /// The number of groups, each with all instances of the job.
    pub(super) fn groups(&self) -> u32 {
        let of_groups = self.shape == Shape::LeaderWorkerSet;
        self.settings.replicas.filter(|_| of_groups).unwrap_or(1)
    }

    /// The row of the kind in the table.
    pub(super) fn kind(&self) -> &'static Kind {
        kind_of(self.shape, self.settings.runtime.is_some())
    }

    /// Whether the pods of a role know their numbers. KubeRay gives workers none, and those of the workers of a
    /// LeaderWorkerSet begin at 1, from which no field of a pod can subtract.
    pub(super) fn has_numbers(&self, role: &RolePlan) -> bool {
        let several = match self.shape {
            Shape::RayJob => false,
            Shape::LeaderWorkerSet => self.job.roles.len() == 1,
            _ => true,
        };
        several || role.instances == 1
    }

    /// The name that a role has in its object: that of the runtime of a platform is its own.
    pub(super) fn part_name<'r>(&'r self, role: &'r str) -> &'r str {
        match (self.shape, &self.settings.runtime) {
            (Shape::TrainJob, Some(runtime)) => runtime.job.as_deref().unwrap_or("node"),
            (Shape::MpiJob, _) => match self.role(role) {
                Some(role) => mpi_part(role),
                None => role,
            },
            _ => role,
        }
    }

    /// The prefix of the names of a role's pods, followed by the index, and for Jobs by random characters.
    pub(super) fn pod_base(&self, role: &str) -> String {
        let name = &self.job.name;
        match self.shape {
            Shape::JobSet | Shape::TrainJob => format!("{name}-{}-0", self.part_name(role)),
            Shape::Volcano | Shape::MpiJob => format!("{name}-{}", self.part_name(role)),
            Shape::LeaderWorkerSet => format!("{name}-0"),
            Shape::Pod | Shape::Job | Shape::IndexedJob | Shape::RayJob | Shape::SharePod => name.clone(),
        }
    }
}
