//! Which rules for order, readiness, completion, retries and time limits Jobs and JobSets can express.

use jobc_schema::failure::Failure;
use jobc_schema::plan::{JobPlan, RolePlan};
use jobc_schema::role::{NeedState, RetryScope};
use jobc_schema::target::KubernetesGate;

use crate::backend::Capability;
use crate::backend::Support::{self, Full, Lossy};
use crate::backend::command::is_member;

use super::super::kai;
use super::super::kinds;
use super::super::policy::{success_rule, uses_per_index};
use super::super::release::{
    BACKOFF_LIMIT_PER_INDEX, DEPENDS_ON, JOBSET_STOP_SIGNAL, MESSAGE_PATTERNS, RESTART_JOB, Release,
    Releases, STOP_SIGNAL, SUCCESS_POLICY, format_release,
};
use super::super::settings::settings;
use super::super::shape::{Shape, restarts_by_jobset, shape};
use super::none;

/// Whether a role can wait for another one.
pub(super) fn needs(capability: Capability, job: &JobPlan, role: &RolePlan, other: &str) -> Support {
    let releases = Releases::of(settings(job));
    let shape = shape(job);
    if matches!(shape, Shape::Job | Shape::IndexedJob) {
        return none("a Job has no dependencies; write `kind: jobset` for the target");
    }
    if shape.is_jobset() && releases.jobset < DEPENDS_ON {
        return too_old("`dependsOn`", "JobSet", releases.jobset, DEPENDS_ON);
    }
    let has_probe = job.role(other).is_some_and(|other| other.ready.is_some());
    if matches!(capability, Capability::Needs(NeedState::Started)) && has_probe {
        return none(format!(
            "a {} waits until the `ready` check of role `{other}` succeeds, not until its processes run; write `{other}: ready` in `needs` of role `{}`",
            kinds::kind(job).name,
            role.name
        ));
    }
    Full
}

/// Whether a policy can be expressed.
pub(super) fn answer(capability: Capability, job: &JobPlan, role: Option<&RolePlan>) -> Support {
    let kubernetes = Releases::of(settings(job)).kubernetes;
    match capability {
        Capability::NeedsMin => {
            none("a JobSet waits for all instances of a role; leave `min` out, or let the command wait")
        }
        Capability::ReadyLog => none(
            "Kubernetes has no probe that reads a log; write `ready: {exec: [...]}` with a command that succeeds when the instance is ready",
        ),
        Capability::MinSucceeded => match role {
            Some(role) if kubernetes < SUCCESS_POLICY && success_rule(role).is_some() => {
                too_old("`successPolicy` of a Job", "Kubernetes", kubernetes, SUCCESS_POLICY)
            }
            _ => Full,
        },
        Capability::StopSignal => stop_signal(job),
        Capability::MinFailed => role.map_or(Full, |role| min_failed(job, role)),
        Capability::Retry(scope) => role.map_or(Full, |role| retry(job, role, scope)),
        Capability::RetryDisruptions => match role {
            Some(role) => disruptions(job, role),
            // `preemption` is that of all roles.
            None => job.roles.iter().map(|role| disruptions(job, role)).find(|one| *one != Full).unwrap_or(Full),
        },
        Capability::RetryBackoff => Lossy(
            "Kubernetes waits 10s, 20s, 40s and so on up to 6m before a retry, and JobSet does not wait; the time cannot be set"
                .to_owned(),
        ),
        Capability::Priority => priority(job),
        Capability::After => none(
            "Kubernetes starts a job as soon as it can; submit it at that time, from a CronJob or a timer of yours",
        ),
        Capability::Notify => none(
            "nothing of jobc watches a job of Kubernetes; leave `notify` out, and run `jobc wait TARGET/JOB --notify` or a command after it",
        ),
        Capability::Idle => none(
            "nothing of jobc watches the GPUs of a job of Kubernetes; leave `idle` out, and look at the metrics of the cluster, such as those of the DCGM exporter",
        ),
        Capability::Schedule if shape(job) != Shape::Job => none(
            "a CronJob makes Jobs with names of their own, by which instances cannot find each other; write one role with one instance, without `kind` in the target",
        ),
        Capability::JobTimeout => job_timeout(job),
        Capability::GangRequired => {
            if settings(job).queue.as_ref().is_some_and(|queue| queue.kueue.is_some()) || has_native_gang(job) {
                return Full;
            }
            if kai::queue(job).is_some() && by_kai(job) {
                return Full;
            }
            if settings(job).queue.as_ref().is_some_and(|queue| queue.volcano.is_some()) {
                return none(
                    "a queue of Volcano starts only a Volcano Job as a whole; write `kind: volcano` for the target",
                );
            }
            none(
                "Kubernetes alone starts each pod as soon as it fits; write `queue: {kueue: NAME}` for the target, because Kueue admits a job as a whole",
            )
        }
        Capability::GangMin if has_native_gang(job) => Full,
        Capability::GangMin
            if kai::queue(job).is_some() && matches!(shape(job), Shape::Job | Shape::IndexedJob) =>
        {
            Full
        }
        Capability::Parallel if kai::queue(job).is_some() && shape(job).is_jobset() => none(
            "KAI starts as many pods of a JobSet together as `parallel` says, and the last ones are fewer, which then wait for ever; leave `parallel` out, or write `kind: job` for the target, whose pods it starts one by one",
        ),
        Capability::GangMin => none(
            "neither Kubernetes nor Kueue starts a job with only some of its pods; write `gang: required` and a target with `queue: {kueue: NAME}`",
        ),
        Capability::RoleMaxParallel => Lossy(
            "a JobSet starts all combinations at once; the quota of a queue limits how many run, or move the matrix to the job"
                .to_owned(),
        ),
        Capability::Metrics if role.is_none_or(|role| !role.has_file_metrics()) => Full,
        Capability::Metrics => Lossy(
            "`jobc report` reads the output of pods, not their files; print the number, and write `log`".to_owned(),
        ),
        Capability::MaxParallel => Lossy(
            "each combination is a separate job and Kubernetes starts them all; a Kueue queue with a matching quota limits them"
                .to_owned(),
        ),
        _ => Full,
    }
}

/// Whether the scheduler of Kubernetes itself starts all pods together: `gang: native` of the target, which is checked by
/// itself.
fn has_native_gang(job: &JobPlan) -> bool {
    settings(job).gang.is_some()
}

/// Whether KAI groups all pods of the job's kind.
fn by_kai(job: &JobPlan) -> bool {
    matches!(shape(job), Shape::Job | Shape::IndexedJob | Shape::JobSet)
}

/// Whether several failures can be tolerated: never exactly.
///
/// The Job controller checks whether every index has ended before it checks `successPolicy`, and then a single failed
/// index ends the Job as `FailedIndexes` (pkg/controller/job of k8s.io/kubernetes), whatever both thresholds are.
fn min_failed(job: &JobPlan, role: &RolePlan) -> Support {
    let releases = Releases::of(settings(job));
    let Some(failed) = role.completion.min_failed else {
        return none(
            "Kubernetes reports a Job with a failed instance as failed; let the command exit with 0, as in `run: python sweep.py || true`",
        );
    };
    if failed <= 1 {
        return Full;
    }
    if role.instances == 1 {
        return none("a role of one instance fails at its first failure; leave `min_failed` out");
    }
    if releases.kubernetes < BACKOFF_LIMIT_PER_INDEX {
        return too_old("`maxFailedIndexes`", "Kubernetes", releases.kubernetes, BACKOFF_LIMIT_PER_INDEX);
    }
    let elastic = is_member(job, role) && job.distributed.as_ref().is_some_and(|d| d.elastic.is_some());
    let instead = if elastic {
        "write `completion: {min_failed: 1}`, so that an instance without retries left ends the job"
    } else {
        "let the command exit with 0 instead, as in `run: python sweep.py || true`"
    };
    Lossy(format!(
        "the other instances continue after fewer than {failed} failures, but a Job whose instances have all ended, one of them with a failure, is failed; {instead}"
    ))
}

/// Whether the retry scope can be expressed.
fn retry(job: &JobPlan, role: &RolePlan, scope: RetryScope) -> Support {
    let releases = Releases::of(settings(job));
    if !restarts_by_jobset(job, role) {
        if uses_per_index(job, role) && releases.kubernetes < BACKOFF_LIMIT_PER_INDEX {
            return too_old(
                "`backoffLimitPerIndex`",
                "Kubernetes",
                releases.kubernetes,
                BACKOFF_LIMIT_PER_INDEX,
            );
        }
        return Full;
    }
    if !shape(job).is_jobset() {
        // The other ranks of a rendezvous do not accept a single one again.
        let or = if is_member(job, role) { "" } else { ", or `scope: task`" };
        return none(format!("a Job restarts single pods only; write `kind: jobset` for the target{or}"));
    }
    let single = scope == RetryScope::Role && job.roles.len() > 1;
    if single && releases.jobset < RESTART_JOB {
        return match too_old("the restart of one role", "JobSet", releases.jobset, RESTART_JOB) {
            Support::None(why) => none(format!("{why}; or write `scope: job`")),
            other => other,
        };
    }
    if single && !settings(job).gates.contains(&KubernetesGate::RestartJob) {
        return none(
            "the restart of one role needs the feature gate `RestartJob` of JobSet, which is alpha and off by default; write `scope: job`, or `gates: [RestartJob]` for the target if the cluster has it on",
        );
    }
    // A policy that only retries disruptions never counts.
    let counts = |r: &RolePlan| restarts_by_jobset(job, r) && r.retry.max > 0;
    let different = counts(role) && job.roles.iter().any(|r| counts(r) && r.retry.max != role.retry.max);
    if different {
        return Lossy(
            "a JobSet counts the restarts of all roles together, up to the greatest `max` of any; write the same `max` for all roles that restart more than one instance"
                .to_owned(),
        );
    }
    Full
}

/// Whether an attempt that ends with an exit code can be resumed without counting, where exit codes can be told apart.
pub(super) fn resume_exit_codes(codes: Option<Support>, job: &JobPlan) -> Support {
    let is_coded = |role: &&RolePlan| restarts_by_jobset(job, role) && role.retry.has_final_codes();
    match codes {
        Some(Support::None(why)) => Support::None(why),
        _ if !has_failure_policy(job) => none(
            "only Jobs and JobSets restart by exit code without counting; write `kind: job` or `jobset` for the target, or `retry`",
        ),
        _ => match job.roles.iter().find(is_coded) {
            Some(role) => none(format!(
                "a JobSet cannot tell these codes from those of `{}`, which are final; leave one of both out",
                role.retry.codes_key()
            )),
            None => Full,
        },
    }
}

fn has_failure_policy(job: &JobPlan) -> bool {
    matches!(shape(job), Shape::Job | Shape::IndexedJob | Shape::JobSet | Shape::TrainJob)
}

/// Whether the kinds of failures that are retried can be told apart, where exit codes can be.
pub(super) fn retry_verdicts(codes: Option<Support>, role: Option<&RolePlan>, job: &JobPlan) -> Support {
    let only_disruptions = |role: &RolePlan| role.retry.on == [Failure::Preempted, Failure::Node];
    match codes {
        Some(Support::None(why)) => Support::None(why),
        _ if has_failure_policy(job) && role.is_none_or(only_disruptions) => Full,
        _ => none(
            "Kubernetes tells only pods that a node or the scheduler ended from others; write `on: [node, preempted]`, or `on_exit_codes`",
        ),
    }
}

/// Whether disruptions can be distinguished from other failures.
///
/// A JobSet sees the reason for which a Job failed, `PodFailurePolicy`, which is the same for every rule of that policy,
/// and in later releases the message.
fn disruptions(job: &JobPlan, role: &RolePlan) -> Support {
    let releases = Releases::of(settings(job));
    let both = restarts_by_jobset(job, role) && role.retry.has_final_codes();
    if both && shape(job).is_jobset() && releases.jobset < MESSAGE_PATTERNS {
        let what = format!("`disruptions` with `{}`", role.retry.codes_key());
        return too_old(&what, "JobSet", releases.jobset, MESSAGE_PATTERNS);
    }
    Full
}

/// Whether the job's time limit holds for the whole job.
fn job_timeout(job: &JobPlan) -> Support {
    if shape(job) != Shape::JobSet {
        return Full;
    }
    let staged = job.roles.iter().any(|role| !role.needs.is_empty());
    let restarts = job.roles.iter().any(|role| restarts_by_jobset(job, role));
    if !staged && !restarts {
        return Full;
    }
    let when = if staged { "when the roles that it needs are ready" } else { "again at each restart" };
    Lossy(format!(
        "a JobSet has no time limit; the Job of each role gets it and counts from its own start, {when}; write `timeout` on the roles instead"
    ))
}

/// Whether a time limit can stand for what a budget limits.
pub(super) fn budget(by_time: Support, job: &JobPlan) -> Support {
    let queue = settings(job).queue.as_ref();
    let prices = job.target.settings.prices.as_ref();
    match by_time {
        Support::None(why) => Support::None(why),
        _ if job.budget_seconds().is_none() => none(
            "Kubernetes has only a time limit for it, and this job may use less at some times, by `needs` or `parallel`, or has an unknown number of GPUs; write `timeout`",
        ),
        Lossy(_) => Lossy(
            "it becomes the time limit of each Job, which begins anew when a JobSet restarts it; write `timeout` on the roles, too"
                .to_owned(),
        ),
        _ if queue.is_some_and(|queue| queue.kueue.is_some()) => Lossy(
            "it becomes a time limit, which begins anew when Kueue suspends the job and starts it again".to_owned(),
        ),
        _ if job.budget.is_some_and(|budget| budget.cost.is_some())
            && prices.is_some_and(|prices| prices.energy.is_some()) =>
        {
            Lossy("it becomes a time limit, by the cost without energy".to_owned())
        }
        _ => Full,
    }
}

/// The signal that stops a pod, in the object that makes it.
fn stop_signal(job: &JobPlan) -> Support {
    let releases = Releases::of(settings(job));
    match shape(job) {
        _ if releases.kubernetes < STOP_SIGNAL => {
            too_old("`lifecycle.stopSignal` of a container", "Kubernetes", releases.kubernetes, STOP_SIGNAL)
        }
        Shape::Pod | Shape::Job | Shape::IndexedJob => Full,
        Shape::JobSet if releases.jobset >= JOBSET_STOP_SIGNAL => Full,
        Shape::JobSet => {
            too_old("`lifecycle.stopSignal` of a container", "JobSet", releases.jobset, JOBSET_STOP_SIGNAL)
        }
        _ => Lossy(format!(
            "the definition of a {} may not know `lifecycle.stopSignal`, and then pods get the signal of the image or SIGTERM",
            kinds::kind(job).name
        )),
    }
}

fn too_old(what: &str, product: &str, has: Release, needs: Release) -> Support {
    let key = if product == "JobSet" { "jobset" } else { "release" };
    none(format!(
        "{what} needs {product} {}, and the target has {}; write `{key}: \"{}\"` for the target if the cluster has it",
        format_release(needs),
        format_release(has),
        format_release(needs)
    ))
}

/// Kubernetes has priorities by name.
fn priority(job: &JobPlan) -> Support {
    let Some(entry) = job.priority.as_ref().map(|priority| &priority.entry) else { return Full };
    let has_queue = settings(job).queue.as_ref().is_some_and(|queue| queue.kueue.is_some());
    if entry.class.is_some() || (entry.kueue.is_some() && has_queue) {
        return Full;
    }
    none(
        "Kubernetes has classes of priorities; name one in `priorities` of the target, such as `urgent: {value: 50, class: high}`",
    )
}
