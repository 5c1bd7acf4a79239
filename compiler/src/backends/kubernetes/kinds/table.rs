//! The table itself.

use jobc_schema::role::{NeedState, RetryScope};

use crate::backend::Capability as C;

use super::Answer::{self, AsJob, Of};
use super::{GangField, Kind, PodGang, Product, Setting, rules};

use super::super::release::{Release, Releases};

/// Every release.
const ANY: (Release, Release) = ((0, 0), LAST);
/// Later than every release.
const LAST: Release = (u32::MAX, u32::MAX);

/// A field that a kind of Kubernetes itself has: 1.35 has the one, later releases the other.
const OF_PODS: &[GangField] = &[
    GangField { field: PodGang::Workload, kubernetes: ((1, 35), (1, 35)), product: ANY },
    GangField { field: PodGang::PodGroup, kubernetes: ((1, 36), LAST), product: ANY },
];

const fn pod_group_from(release: Release) -> [GangField; 1] {
    [GangField { field: PodGang::PodGroup, kubernetes: ((1, 36), LAST), product: (release, LAST) }]
}

const JOBSET_PRODUCT: Product = Product {
    name: "JobSet",
    key: Some("jobset"),
    release: |settings| Releases::of(settings).jobset,
    // The rules of `failurePolicy` and `ttlSecondsAfterFinished`.
    oldest: (0, 6),
};

const TRAINER: Product = Product {
    name: "Kubeflow Trainer",
    key: Some("trainer"),
    release: |settings| Releases::of(settings).trainer,
    // `runtimePatches` and `activeDeadlineSeconds`.
    oldest: (2, 2),
};

/// All kinds.
#[cfg(test)]
pub(in super::super) const KINDS: [&Kind; 10] = [
    &POD,
    &JOB,
    &JOBSET,
    &TRAINJOB,
    &TRAINJOB_PATCHED,
    &VOLCANO,
    &MPIJOB,
    &RAYJOB,
    &LEADERWORKERSET,
    &SHAREPOD,
];

const ONE_ROLE: Answer = Answer::None("a Pod is one task; write `kind: jobset` for the target");

/// A Pod.
pub(super) static POD: Kind = Kind {
    name: "Pod",
    product: None,
    takes: &[],
    gang: OF_PODS,
    answers: &[
        (C::Needs(NeedState::Started), ONE_ROLE),
        (C::Needs(NeedState::Ready), ONE_ROLE),
        (C::Needs(NeedState::Succeeded), ONE_ROLE),
        (C::NeedsMin, ONE_ROLE),
        (C::MinSucceeded, Answer::Full),
        (C::MinFailed, AsJob),
        (C::Retry(RetryScope::Task), Of(rules::pod_retry)),
        (C::Retry(RetryScope::Role), Of(rules::pod_retry)),
        (C::Retry(RetryScope::Job), Of(rules::pod_retry)),
        (
            C::RetryExitCodes,
            Answer::None(
                "the kubelet restarts the container of a Pod after every exit code but 0; write `kind: job` for the target",
            ),
        ),
        (
            C::RetryBackoff,
            Answer::Lossy(
                "the kubelet waits 10s, 20s, 40s and so on up to 5m before it restarts a container; the time cannot be set",
            ),
        ),
        (
            C::RetryDisruptions,
            Answer::None("a Pod that is evicted does not come back; write `kind: job` for the target"),
        ),
        (C::JobTimeout, Answer::Full),
        (C::RoleTimeout, Of(rules::pod_timeout)),
        (C::GangRequired, Answer::Full),
        (C::GangMin, Answer::Full),
        (C::Parallel, Answer::Full),
        (C::RoleMatrix, ONE_ROLE),
    ],
};

/// A Job, Indexed or not.
pub(super) static JOB: Kind = Kind {
    name: "Job",
    product: None,
    takes: &[Setting::Suspend, Setting::Ttl, Setting::Kueue],
    gang: OF_PODS,
    answers: AS_JOB,
};

/// A JobSet.
pub(super) static JOBSET: Kind = Kind {
    name: "JobSet",
    product: Some(JOBSET_PRODUCT),
    takes: &[Setting::Suspend, Setting::Ttl, Setting::Kueue],
    gang: &[
        GangField { field: PodGang::Workload, kubernetes: ((1, 35), (1, 35)), product: ((0, 11), (0, 11)) },
        GangField { field: PodGang::PodGroup, kubernetes: ((1, 36), LAST), product: ((0, 12), LAST) },
    ],
    answers: AS_JOB,
};

/// What Jobs and JobSets can do depends on the roles and releases: `policies`.
const AS_JOB: &[(C, Answer)] = &[
    (C::Needs(NeedState::Started), AsJob),
    (C::Needs(NeedState::Ready), AsJob),
    (C::Needs(NeedState::Succeeded), AsJob),
    (C::NeedsMin, AsJob),
    (C::MinSucceeded, AsJob),
    (C::MinFailed, AsJob),
    (C::Retry(RetryScope::Task), AsJob),
    (C::Retry(RetryScope::Role), AsJob),
    (C::Retry(RetryScope::Job), AsJob),
    (C::RetryExitCodes, Answer::Full),
    (C::RetryBackoff, AsJob),
    (C::RetryDisruptions, AsJob),
    (C::JobTimeout, AsJob),
    (C::RoleTimeout, Answer::Full),
    (C::GangRequired, AsJob),
    (C::GangMin, AsJob),
    (C::Parallel, AsJob),
    (C::RoleMatrix, Answer::Full),
];

/// A TrainJob with its own runtime: a JobSet that Trainer creates.
///
/// Trainer sets `parallelism` and `completions` of every role to the number of its instances.
pub(super) static TRAINJOB: Kind = Kind {
    name: "TrainJob",
    product: Some(TRAINER),
    takes: &[Setting::Suspend, Setting::Kueue, Setting::Volcano],
    gang: &pod_group_from((2, 3)),
    answers: &[
        (C::Needs(NeedState::Started), AsJob),
        (C::Needs(NeedState::Ready), AsJob),
        (C::Needs(NeedState::Succeeded), AsJob),
        (C::NeedsMin, AsJob),
        (C::MinSucceeded, AsJob),
        (C::MinFailed, AsJob),
        (C::Retry(RetryScope::Task), AsJob),
        (C::Retry(RetryScope::Role), AsJob),
        (C::Retry(RetryScope::Job), AsJob),
        (C::RetryExitCodes, Answer::Full),
        (C::RetryBackoff, AsJob),
        (C::RetryDisruptions, AsJob),
        (C::JobTimeout, Answer::Full),
        (C::RoleTimeout, Answer::Full),
        (C::GangRequired, Answer::InVolcano(rules::gang_of_trainjob)),
        (C::GangMin, AsJob),
        (
            C::Parallel,
            Answer::None(
                "Kubeflow Trainer starts all instances of a role at once; leave `parallel` out, or write `kind: jobset` for the target",
            ),
        ),
        (C::RoleMatrix, Answer::Full),
    ],
};

const OF_RUNTIME: Answer = Answer::None(
    "the runtime of the platform decides it; leave `runtime` of the target out, so that jobc writes a runtime of the job's own",
);

/// A TrainJob with a runtime of the platform.
pub(super) static TRAINJOB_PATCHED: Kind = Kind {
    name: "TrainJob",
    product: Some(TRAINER),
    takes: &[Setting::Suspend, Setting::Kueue],
    // A patch has no such field.
    gang: &[],
    answers: &[
        (C::Needs(NeedState::Started), OF_RUNTIME),
        (C::Needs(NeedState::Ready), OF_RUNTIME),
        (C::Needs(NeedState::Succeeded), OF_RUNTIME),
        (C::NeedsMin, OF_RUNTIME),
        (C::MinSucceeded, OF_RUNTIME),
        (C::MinFailed, OF_RUNTIME),
        (C::Retry(RetryScope::Task), OF_RUNTIME),
        (C::Retry(RetryScope::Role), OF_RUNTIME),
        (C::Retry(RetryScope::Job), OF_RUNTIME),
        (C::RetryExitCodes, OF_RUNTIME),
        (C::RetryBackoff, OF_RUNTIME),
        (C::RetryDisruptions, OF_RUNTIME),
        (C::JobTimeout, Answer::Full),
        (
            C::RoleTimeout,
            Answer::None(
                "a patch of a runtime has no time limit of pods; write `timeout` of the job instead",
            ),
        ),
        (C::GangRequired, AsJob),
        (C::GangMin, OF_RUNTIME),
        (C::Parallel, OF_RUNTIME),
        (C::RoleMatrix, OF_RUNTIME),
        (C::ReadyProbe, OF_RUNTIME),
        (C::ReadyKeep, OF_RUNTIME),
        (C::Workdir, OF_RUNTIME),
        (C::Network(jobc_schema::job::Network::Host), OF_RUNTIME),
        (C::ExtraHosts, OF_RUNTIME),
        (C::DnsServers, OF_RUNTIME),
        (C::DnsSearch, OF_RUNTIME),
        (C::PublishHost, OF_RUNTIME),
    ],
};

/// A Volcano Job.
pub(super) static VOLCANO: Kind = Kind {
    name: "Volcano Job",
    product: Some(Product { name: "Volcano", key: None, release: |_| (1, 15), oldest: (1, 11) }),
    takes: &[Setting::Ttl, Setting::Volcano],
    // It makes its own groups.
    gang: &[],
    answers: &[
        (C::Needs(NeedState::Started), AsJob),
        (C::Needs(NeedState::Ready), Answer::Full),
        (
            C::Needs(NeedState::Succeeded),
            Answer::None(
                "Volcano starts a role when those that it needs run; write `ready`, or `kind: jobset` for the target",
            ),
        ),
        (C::NeedsMin, Of(rules::volcano_needs_min)),
        (C::MinSucceeded, Of(rules::volcano_min_succeeded)),
        (
            C::MinFailed,
            Answer::None(
                "a Volcano Job ends at its first failure or at none; write `kind: jobset` for the target, or let the command exit with 0 instead, as in `run: python sweep.py || true`",
            ),
        ),
        (C::Retry(RetryScope::Task), Of(rules::volcano_retry)),
        (C::Retry(RetryScope::Role), Of(rules::volcano_retry)),
        (C::Retry(RetryScope::Job), Of(rules::volcano_retry)),
        (C::RetryExitCodes, Answer::Full),
        (C::RetryBackoff, Answer::Lossy("Volcano tries again at once; the time cannot be set")),
        (
            C::RetryDisruptions,
            Answer::None(
                "Volcano counts the restart after an eviction like any other; leave `disruptions` out and raise `max`",
            ),
        ),
        (
            C::JobTimeout,
            Answer::None("a Volcano Job has no time limit; write `timeout` on the roles instead"),
        ),
        (C::RoleTimeout, Answer::Full),
        (C::GangRequired, Of(rules::volcano_gang)),
        (C::GangMin, Of(rules::volcano_gang)),
        (
            C::Parallel,
            Answer::None(
                "Volcano starts all instances of a role; leave `parallel` out, or write `kind: jobset` for the target",
            ),
        ),
        (C::RoleMatrix, Answer::Full),
    ],
};

/// An MPIJob.
pub(super) static MPIJOB: Kind = Kind {
    name: "MPIJob",
    product: Some(Product { name: "MPI Operator", key: None, release: |_| (0, 8), oldest: (0, 6) }),
    takes: &[Setting::Suspend, Setting::Ttl, Setting::Kueue, Setting::Volcano],
    gang: &[GangField { field: PodGang::Workload, kubernetes: ((1, 35), (1, 35)), product: ANY }],
    answers: &[
        (C::Needs(NeedState::Started), AsJob),
        (C::Needs(NeedState::Ready), Of(rules::mpi_needs)),
        (
            C::Needs(NeedState::Succeeded),
            Answer::None("the workers of an MPIJob run until it ends; write `ready`"),
        ),
        (C::NeedsMin, Answer::None("the launcher of an MPIJob waits for all workers; leave `min` out")),
        (C::MinSucceeded, Of(rules::mpi_of_launcher)),
        (C::MinFailed, Answer::None("an MPIJob fails with its launcher; leave `min_failed` out")),
        (C::Retry(RetryScope::Task), Of(rules::mpi_of_launcher)),
        (C::Retry(RetryScope::Role), Of(rules::mpi_of_launcher)),
        (
            C::Retry(RetryScope::Job),
            Answer::None(
                "an MPIJob starts only its launcher again; write `scope: task` on the launcher, or `kind: jobset` for the target",
            ),
        ),
        (
            C::RetryExitCodes,
            Answer::None(
                "the launcher of an MPIJob is tried again whatever its exit code; leave the exit codes of `retry` out",
            ),
        ),
        (
            C::RetryBackoff,
            Answer::Lossy(
                "Kubernetes waits 10s, 20s, 40s and so on up to 6m before a retry; the time cannot be set",
            ),
        ),
        (
            C::RetryDisruptions,
            Answer::None("an MPIJob cannot tell disruptions from failures; leave `disruptions` out"),
        ),
        (C::JobTimeout, Answer::Full),
        (C::RoleTimeout, Answer::Full),
        (C::GangRequired, Answer::InVolcano(|_, _| crate::backend::Support::Full)),
        (C::GangMin, Answer::None("the gang of an MPIJob is all of its pods; write `gang: required`")),
        (C::Parallel, Answer::None("an MPIJob starts all workers; leave `parallel` out")),
        (
            C::RoleMatrix,
            Answer::None("an MPIJob has a launcher and one kind of workers; write `kind: jobset`"),
        ),
    ],
};

const NEW_CLUSTER: Answer = Answer::None(
    "a RayJob is tried again as a whole, with a new Ray cluster; write `scope: job`, or `kind: jobset` for the target",
);

/// A RayJob.
pub(super) static RAYJOB: Kind = Kind {
    name: "RayJob",
    product: Some(Product {
        name: "KubeRay",
        key: Some("kuberay"),
        release: |settings| Releases::of(settings).kuberay,
        oldest: (1, 3),
    }),
    takes: &[Setting::Suspend, Setting::Ttl, Setting::Kueue],
    gang: &pod_group_from((1, 7)),
    answers: &[
        (C::Needs(NeedState::Started), RAY_NEEDS),
        (C::Needs(NeedState::Ready), RAY_NEEDS),
        (C::Needs(NeedState::Succeeded), RAY_NEEDS),
        (C::NeedsMin, RAY_NEEDS),
        (C::MinSucceeded, Of(rules::ray_completion)),
        (C::MinFailed, Of(rules::ray_completion)),
        (C::Retry(RetryScope::Task), NEW_CLUSTER),
        (C::Retry(RetryScope::Role), NEW_CLUSTER),
        (C::Retry(RetryScope::Job), Of(rules::ray_retry)),
        (
            C::RetryExitCodes,
            Answer::None("a RayJob is tried again whatever the exit code; leave those of `retry` out"),
        ),
        (C::RetryBackoff, Answer::Lossy("KubeRay tries again at once; the time cannot be set")),
        (
            C::RetryDisruptions,
            Answer::None(
                "KubeRay replaces workers that are lost, and counts a lost head; leave `disruptions` out",
            ),
        ),
        (C::JobTimeout, Answer::Full),
        (C::RoleTimeout, Answer::None("KubeRay replaces pods that end; write `timeout` of the job instead")),
        (C::GangRequired, AsJob),
        (C::GangMin, Answer::None("the gang of a RayJob is all of its pods; write `gang: required`")),
        (C::Parallel, Answer::None("a RayJob starts all workers; leave `parallel` out")),
        (C::RoleMatrix, Answer::None("a RayJob has no matrix of roles; move the `matrix` to the job")),
        (C::ReadyProbe, Answer::None("KubeRay checks its pods itself; leave `ready` out")),
        (C::ReadyKeep, Answer::None("KubeRay checks its pods itself; leave `ready` out")),
    ],
};

const RAY_NEEDS: Answer =
    Answer::None("KubeRay starts the head first, and the driver when all run; leave `needs` out");

const NEVER_ENDS: Answer = Answer::None(rules::NEVER_ENDS);
const RECREATED: Answer = Answer::Lossy(
    "a LeaderWorkerSet starts all instances again after any failure, without end; the numbers are not used",
);

/// A LeaderWorkerSet.
pub(super) static LEADERWORKERSET: Kind = Kind {
    name: "LeaderWorkerSet",
    product: Some(Product {
        name: "LeaderWorkerSet",
        key: Some("lws"),
        release: |settings| Releases::of(settings).lws,
        oldest: (0, 6),
    }),
    takes: &[Setting::Kueue],
    gang: &pod_group_from((0, 10)),
    answers: &[
        (C::Needs(NeedState::Started), AsJob),
        (C::Needs(NeedState::Ready), Of(rules::lws_needs)),
        (C::Needs(NeedState::Succeeded), NEVER_ENDS),
        (
            C::NeedsMin,
            Answer::None("the workers of a LeaderWorkerSet wait for the one leader; leave `min` out"),
        ),
        (C::MinSucceeded, Of(rules::lws_min_succeeded)),
        (C::MinFailed, NEVER_ENDS),
        (C::Retry(RetryScope::Task), RECREATED),
        (C::Retry(RetryScope::Role), RECREATED),
        (C::Retry(RetryScope::Job), RECREATED),
        (C::RetryExitCodes, NEVER_ENDS),
        (
            C::RetryBackoff,
            Answer::Lossy(
                "a LeaderWorkerSet waits before a restart as the kubelet does; the time cannot be set",
            ),
        ),
        (C::RetryDisruptions, Answer::Full),
        (C::JobTimeout, NEVER_ENDS),
        (C::RoleTimeout, NEVER_ENDS),
        (C::GangRequired, AsJob),
        (C::GangMin, AsJob),
        (C::Parallel, Answer::None("a LeaderWorkerSet starts all instances; leave `parallel` out")),
        (
            C::RoleMatrix,
            Answer::None("a LeaderWorkerSet has one leader and one kind of workers; write `kind: jobset`"),
        ),
    ],
};

/// The object of a GPU provider.
pub(super) static SHAREPOD: Kind =
    Kind { name: "SharePod", product: None, takes: &[], gang: &[], answers: AS_JOB };
