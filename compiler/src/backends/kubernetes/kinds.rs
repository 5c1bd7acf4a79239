//! The kinds of objects: what each of them can express, and since which release. Only this module has that information.
//!
//! Sources: batch/v1 of Kubernetes 1.37, JobSet 0.12, Kubeflow Trainer 2.3, Volcano 1.15, MPI Operator 0.8, KubeRay 1.7,
//! LeaderWorkerSet 0.10: their definitions, and their controllers where a definition does not say what a field does.

mod rules;
mod table;

use jobc_schema::plan::{JobPlan, RolePlan};
use jobc_schema::target::KubernetesTarget;

use crate::backend::Capability;
use crate::backend::Support::{self, Full, Lossy};

use super::release::Release;
use super::settings::settings;
use super::shape::{Shape, shape};

#[cfg(test)]
pub(super) use table::KINDS;

/// A kind of object.
pub(super) struct Kind {
    /// Its name as Kubernetes writes it.
    pub name: &'static str,
    /// The controller for it, if it is not part of Kubernetes.
    pub product: Option<Product>,
    /// The settings of a target that it supports.
    pub takes: &'static [Setting],
    /// The pod field for a gang of Kubernetes itself: the first entry whose releases the target has.
    pub gang: &'static [GangField],
    /// What it can express, by capability.
    pub answers: &'static [(Capability, Answer)],
}

/// A setting of a target that not every kind supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    /// It can be created suspended.
    Suspend,
    /// It is deleted some time after its end.
    Ttl,
    /// Kueue manages it.
    Kueue,
    /// It can be in a queue of Volcano.
    Volcano,
}

/// What serves a kind, and the releases that jobc writes for.
pub(super) struct Product {
    /// Its name.
    pub name: &'static str,
    /// The setting with its release, if the releases differ in what jobc writes.
    pub key: Option<&'static str>,
    /// The release of a target.
    pub release: fn(&KubernetesTarget) -> Release,
    /// The oldest release.
    pub oldest: Release,
}

/// A pod field that puts a pod into a gang, and the releases that have it.
#[derive(Clone, Copy)]
pub(super) struct GangField {
    /// The field.
    pub field: PodGang,
    /// The first and the last release of Kubernetes.
    pub kubernetes: (Release, Release),
    /// The first and the last release of the product; `ANY` for kinds of Kubernetes itself.
    pub product: (Release, Release),
}

/// How a pod names its gang.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PodGang {
    /// `workloadRef` to a Workload, Kubernetes 1.35.
    Workload,
    /// `schedulingGroup` with a PodGroup, from Kubernetes 1.36.
    PodGroup,
}

/// How well a kind supports a feature.
#[derive(Clone, Copy)]
pub(super) enum Answer {
    /// Exactly.
    Full,
    /// As the Jobs of the same roles: `policies` computes it.
    AsJob,
    /// Not exactly: what happens instead.
    Lossy(&'static str),
    /// Not at all: why, and what to write instead.
    None(&'static str),
    /// It depends on the job.
    Of(fn(&JobPlan, Option<&RolePlan>) -> Support),
    /// It depends on the job if that is in a queue of Volcano; otherwise as the Jobs of the same roles.
    InVolcano(fn(&JobPlan, Option<&RolePlan>) -> Support),
}

/// The kind of a shape; a plain Job and the object of a GPU provider have their own rules.
pub(super) fn kind_of(shape: Shape, patched: bool) -> &'static Kind {
    match shape {
        Shape::Pod => &table::POD,
        Shape::Job | Shape::IndexedJob => &table::JOB,
        Shape::JobSet => &table::JOBSET,
        Shape::TrainJob if patched => &table::TRAINJOB_PATCHED,
        Shape::TrainJob => &table::TRAINJOB,
        Shape::Volcano => &table::VOLCANO,
        Shape::MpiJob => &table::MPIJOB,
        Shape::RayJob => &table::RAYJOB,
        Shape::LeaderWorkerSet => &table::LEADERWORKERSET,
        Shape::SharePod => &table::SHAREPOD,
    }
}

/// The kind that a job becomes.
pub(super) fn kind(job: &JobPlan) -> &'static Kind {
    kind_of(shape(job), settings(job).runtime.is_some())
}

impl Kind {
    /// Whether it supports a setting.
    pub(super) fn takes(&self, setting: Setting) -> bool {
        self.takes.contains(&setting)
    }

    /// The entry of the table for a capability; `None` if it concerns only the pods.
    pub(super) fn answer(
        &self,
        capability: Capability,
        job: &JobPlan,
        role: Option<&RolePlan>,
    ) -> Option<Support> {
        let (_, answer) = self.answers.iter().find(|(known, _)| *known == capability)?;
        match answer {
            Answer::Full => Some(Full),
            Answer::AsJob => None,
            Answer::Lossy(why) => Some(Lossy((*why).to_owned())),
            Answer::None(why) => Some(Support::None((*why).to_owned())),
            Answer::Of(answer) => Some(answer(job, role)),
            Answer::InVolcano(answer) => {
                let queue = settings(job).queue.as_ref()?;
                queue.volcano.as_ref().map(|_| answer(job, role))
            }
        }
    }

    /// The oldest release of its product that jobc writes for.
    pub(super) fn oldest(&self) -> Release {
        self.product.as_ref().map_or_else(Release::default, |product| product.oldest)
    }

    /// The release of its product that the target has.
    pub(super) fn release(&self, settings: &KubernetesTarget) -> Option<Release> {
        self.product.as_ref().map(|product| (product.release)(settings))
    }

    /// How its pods name a gang of Kubernetes itself, if they can with the releases of the target.
    pub(super) fn gang_field(&self, kubernetes: Release, settings: &KubernetesTarget) -> Option<PodGang> {
        let product = self.release(settings).unwrap_or_default();
        let has = |(first, last): (Release, Release), release| first <= release && release <= last;
        let found =
            self.gang.iter().find(|known| has(known.kubernetes, kubernetes) && has(known.product, product));
        found.map(|known| known.field)
    }
}
