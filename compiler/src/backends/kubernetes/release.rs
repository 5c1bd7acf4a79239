//! The releases of Kubernetes and of what serves other kinds, and what each brought to Jobs and JobSets.

use jobc_schema::target::KubernetesTarget;

/// A release: major and minor.
pub(super) type Release = (u32, u32);

/// The releases the output must fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Releases {
    /// Of Kubernetes.
    pub kubernetes: Release,
    /// Of JobSet.
    pub jobset: Release,
    /// Of Kubeflow Trainer.
    pub trainer: Release,
    /// Of KubeRay.
    pub kuberay: Release,
    /// Of LeaderWorkerSet.
    pub lws: Release,
}

/// The default releases, for targets that name none.
pub(super) const DEFAULT: Releases =
    Releases { kubernetes: (1, 36), jobset: (0, 12), trainer: (2, 3), kuberay: (1, 7), lws: (0, 10) };

/// The oldest release of Kubernetes whose fields jobc relies on: it labels pods with `batch.kubernetes.io/job-name`. Those
/// of other products are in `kinds`.
pub(super) const OLDEST_KUBERNETES: Release = (1, 27);

/// The newest release of Kubernetes whose fields jobc knows.
pub(super) const NEWEST_KUBERNETES: Release = (1, 37);

/// `backoffLimitPerIndex` and `maxFailedIndexes` of a Job; on by default from here.
pub(super) const BACKOFF_LIMIT_PER_INDEX: Release = (1, 29);
/// `podReplacementPolicy` of a Job; on by default from here.
pub(super) const POD_REPLACEMENT_POLICY: Release = (1, 29);
/// `successPolicy` of a Job; on by default from here.
pub(super) const SUCCESS_POLICY: Release = (1, 31);
/// `dependsOn` of a replicated job.
pub(super) const DEPENDS_ON: Release = (0, 8);
/// More than one item in `dependsOn`.
pub(super) const DEPENDS_ON_FIVE: Release = (0, 9);
/// `onJobFailureMessagePatterns` of JobSet's failure policy.
pub(super) const MESSAGE_PATTERNS: Release = (0, 10);
/// The action `RestartJob` of JobSet's failure policy.
pub(super) const RESTART_JOB: Release = (0, 12);
/// `lifecycle.stopSignal` of a container.
pub(super) const STOP_SIGNAL: Release = (1, 33);
/// JobSet's own schema has it from here.
pub(super) const JOBSET_STOP_SIGNAL: Release = (0, 12);

/// Variables from files of the pod; on by default from the next one.
pub(super) const ENV_FILES: Release = (1, 34);
/// JobSet's own schema has them from here.
pub(super) const JOBSET_ENV_FILES: Release = (0, 12);

impl Releases {
    /// The releases a target names, else today's.
    pub(super) fn of(settings: &KubernetesTarget) -> Self {
        let read = |text: &Option<String>, default| text.as_deref().and_then(parse).unwrap_or(default);
        Self {
            kubernetes: read(&settings.release, DEFAULT.kubernetes),
            jobset: read(&settings.jobset, DEFAULT.jobset),
            trainer: read(&settings.trainer, DEFAULT.trainer),
            kuberay: read(&settings.kuberay, DEFAULT.kuberay),
            lws: read(&settings.lws, DEFAULT.lws),
        }
    }

    /// How many items `dependsOn` may have: the CRD's `maxItems`.
    pub(super) fn max_depends_on(self) -> usize {
        match self.jobset {
            old if old < DEPENDS_ON => 0,
            old if old < DEPENDS_ON_FIVE => 1,
            _ => 5,
        }
    }
}

/// `1.36` as a pair; `None` if the text is not a release, which the targets' schema forbids.
fn parse(text: &str) -> Option<Release> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// A release as people write it.
pub(super) fn format_release((major, minor): Release) -> String {
    format!("{major}.{minor}")
}
