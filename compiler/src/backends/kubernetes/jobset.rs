//! The JobSet of a job with several roles.

mod types;

use std::collections::{BTreeMap, BTreeSet};

use jobc_schema::Pointer;
use jobc_schema::plan::{Launch, RolePlan};
use jobc_schema::role::{Disruptions, NeedState, RetryScope};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::diagnostic::Sink;

use super::cluster::Cluster;
use super::config::Configs;
use super::job::{self, suspended};
use super::metadata;
use super::naming;
use super::origins::Origins;
use super::policy;
use super::preflight;
use super::shape::{self, Shape};

pub(super) use types::JobSet;
use types::{
    DependsOn, FailurePolicy, FailureRule, JobTemplate, ReplicatedJob, Restart, Spec, SuccessPolicy,
};

/// The JobSet of a job.
pub(super) fn jobset(
    cluster: &Cluster<'_>,
    configs: &Configs,
    origins: &mut Origins,
    sink: &mut Sink,
) -> JobSet {
    let mut spec = spec(cluster, configs, &Pointer::ROOT.key("spec"), origins, sink);
    if let Some(ttl) = cluster.settings.ttl {
        spec.ttl_seconds_after_finished = Some(ttl.0);
        origins.target(["spec", "ttlSecondsAfterFinished"], &["ttl"]);
    }
    spec.suspend = suspended(cluster, origins);
    JobSet {
        api_version: "jobset.x-k8s.io/v1alpha2",
        kind: "JobSet",
        metadata: metadata::workload(cluster),
        spec,
    }
}

/// What the JobSet of a job runs; `at` is its place in the object.
pub(super) fn spec(
    cluster: &Cluster<'_>,
    configs: &Configs,
    at: &Pointer,
    origins: &mut Origins,
    sink: &mut Sink,
) -> Spec {
    let trainer = naming::trainer(cluster.job).filter(|_| cluster.shape == Shape::TrainJob);
    let mut replicated_jobs = vec![];
    for role in in_order(cluster) {
        let base = at.key("replicatedJobs").index(replicated_jobs.len());
        let mut own = Origins::below(base.clone());
        own.spec(["name"], &role.at());
        if !role.needs.is_empty() {
            own.spec(["dependsOn"], &role.at().key("needs"));
        }
        origins.append(own);
        let spec = job::spec(cluster, configs, role, &base.keys(["template", "spec"]), origins, sink);
        let replicated = ReplicatedJob {
            name: role.name.clone(),
            replicas: (cluster.shape == Shape::TrainJob).then_some(1),
            depends_on: depends_on(role),
            template: JobTemplate { metadata: step(trainer, role), spec },
        };
        replicated_jobs.push(serde_json::to_value(replicated).expect("a typed object is plain JSON"));
    }
    let mut own = Origins::below(at.clone());
    let success_policy = success_policy(cluster, &mut own);
    let failure_policy = failure_policy(cluster, &mut own);
    origins.append(own);
    Spec { suspend: None, ttl_seconds_after_finished: None, success_policy, failure_policy, replicated_jobs }
}

/// The label by which Kubeflow Trainer knows the role that trains.
fn step(trainer: Option<&RolePlan>, role: &RolePlan) -> Option<ObjectMeta> {
    let is_trainer = trainer.is_some_and(|trainer| trainer.name == role.name);
    let labels = BTreeMap::from([(naming::TRAINJOB_STEP.to_owned(), "trainer".to_owned())]);
    is_trainer.then(|| ObjectMeta { labels: Some(labels), ..ObjectMeta::default() })
}

/// The roles so that each is after those it needs, as `dependsOn` demands, and otherwise as in the file.
pub(super) fn in_order<'a>(cluster: &Cluster<'a>) -> Vec<&'a RolePlan> {
    let mut seen = BTreeSet::new();
    let staged = cluster.job.stages.iter().flatten().filter_map(|name| cluster.role(name));
    let all: Vec<&RolePlan> =
        staged.chain(&cluster.job.roles).filter(|role| seen.insert(role.name.as_str())).collect();
    if all.iter().all(|role| role.needs.is_empty()) { cluster.job.roles.iter().collect() } else { all }
}

fn depends_on(role: &RolePlan) -> Vec<DependsOn> {
    let status = |state| match state {
        NeedState::Succeeded => "Complete",
        NeedState::Started | NeedState::Ready => "Ready",
    };
    role.needs.iter().map(|need| DependsOn { name: need.role.clone(), status: status(need.state) }).collect()
}

/// The roles that decide that the job has succeeded; `None` if all do.
///
/// A role with a threshold ends the job alone. Roles that only serve never end, so the others decide.
fn success_policy(cluster: &Cluster<'_>, origins: &mut Origins) -> Option<SuccessPolicy> {
    let named = |keep: &dyn Fn(&RolePlan) -> bool| -> Vec<String> {
        cluster.job.roles.iter().filter(|role| keep(role)).map(|role| role.name.clone()).collect()
    };
    let deciding: Vec<&RolePlan> =
        cluster.job.roles.iter().filter(|role| role.completion.min_succeeded.is_some()).collect();
    if let Some(first) = deciding.first() {
        origins.spec(["successPolicy"], &first.at().keys(["completion", "min_succeeded"]));
        let operator = if deciding.len() == 1 { "All" } else { "Any" };
        let target_replicated_jobs = named(&|role| role.completion.min_succeeded.is_some());
        return Some(SuccessPolicy { operator, target_replicated_jobs });
    }
    if cluster.job.roles.iter().any(|role| role.launch == Launch::None) {
        origins.spec(["successPolicy"], &Pointer::ROOT.keys(["distributed", "launch"]));
        let target_replicated_jobs = named(&|role| role.launch != Launch::None);
        return Some(SuccessPolicy { operator: "All", target_replicated_jobs });
    }
    None
}

/// What a failure of a role's Job restarts.
///
/// JobSet restarts everything unless a rule says otherwise, up to `maxRestarts`, so the rules name the roles that must
/// not be restarted, and those that restart alone. Without a policy it restarts nothing.
fn failure_policy(cluster: &Cluster<'_>, origins: &mut Origins) -> Option<FailurePolicy> {
    let roles = &cluster.job.roles;
    let restarts_by_jobset = |role: &RolePlan| shape::restarts_by_jobset(cluster.job, role);
    let counts = |role: &RolePlan| restarts_by_jobset(role) && role.retry.max > 0;
    let ignores = |role: &RolePlan| {
        let is_uncounted =
            role.retry.disruptions == Disruptions::Ignore || preflight::has_rules(cluster.job, role);
        restarts_by_jobset(role) && is_uncounted
    };
    let alone = |role: &RolePlan| roles.len() > 1 && role.retry.scope == RetryScope::Role;
    let max = roles.iter().filter(|r| counts(r)).map(|r| r.retry.max).max().unwrap_or(0);
    if max == 0 && !roles.iter().any(ignores) {
        return None;
    }
    if let Some(role) = roles.iter().find(|role| restarts_by_jobset(role)) {
        origins.spec(["failurePolicy"], &role.at().key("retry"));
    }
    let names = |keep: &dyn Fn(&&RolePlan) -> bool| -> Vec<String> {
        roles.iter().filter(|role| keep(role)).map(|role| role.name.clone()).collect()
    };
    let mut matching = vec![];
    if cluster.deadline().is_some() && cluster.shape == Shape::JobSet {
        matching.push(FailureRule::fail("timeout", "DeadlineExceeded", vec![]));
    }
    let coded = |role: &RolePlan| counts(role) && role.retry.has_final_codes();
    // A disruption and a final exit code are both `PodFailurePolicy`, so these rules are before that of the codes. Only
    // roles with both need the message, which older releases cannot compare.
    for (name, restart, is_alone, by_message) in [
        ("disruption", Restart::JobSet, false, false),
        ("disruptionOfRole", Restart::Job, true, false),
        ("disruptionNotExitCode", Restart::JobSet, false, true),
        ("disruptionOfRoleNotExitCode", Restart::Job, true, true),
    ] {
        let roles = names(&|role| ignores(role) && alone(role) == is_alone && coded(role) == by_message);
        if !roles.is_empty() {
            matching.push(FailureRule::ignore_disruption(name, restart, by_message, roles));
        }
    }
    let coded = names(&|role| coded(role));
    if !coded.is_empty() {
        matching.push(FailureRule::fail("exitCode", "PodFailurePolicy", coded));
    }
    let single = names(&|role| counts(role) && alone(role));
    if !single.is_empty() {
        matching.push(FailureRule::restart_job("role", single));
    }
    let never = names(&|role| !counts(role));
    if !never.is_empty() {
        matching.push(FailureRule::fail_any("noRetry", never));
    }
    Some(FailurePolicy { max_restarts: policy::restarts(max), rules: matching })
}
