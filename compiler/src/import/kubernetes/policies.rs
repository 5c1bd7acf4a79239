//! Retries, failures and success: when a role or the job ends, and what is started again.

use serde_json::{Map, Value as Json, json};

use crate::document::Node;
use crate::source::Span;

use super::super::draft::Draft;
use super::super::keyed::only;
use super::super::nodes::{json as node, number, string};
use super::super::values::{scalar, text_at, texts};
use super::facts::{Fact, Facts, number_of};
use super::group::{Group, retries};
use super::kinds::{Kind, Stands};

/// The retries of a Job that has no `backoffLimit`.
const DEFAULT_RETRIES: u64 = 6;

/// Those of a group.
pub(super) fn of_group(role: &str, instances: u64, facts: &mut Facts, job: &Facts, draft: &mut Draft<'_>) {
    let path = ["roles", role];
    let restarts_job = job.number(Fact::JobRetries).unwrap_or(0) > 0;
    let per_index = facts.take_number(Fact::RetriesPerIndex, draft);
    if let Some((max, part)) = facts.take_number(Fact::Retries, draft) {
        if per_index.is_some() {
            draft.note(part, "each instance has its own number of retries");
        } else {
            retries(&path, Some(max), part, draft);
            if max > 0 && restarts_job {
                draft.set(&["roles", role, "retry", "scope"], part, string(part, "task"));
            }
        }
    }
    if let Some((max, part)) = per_index {
        retries(&path, Some(max), part, draft);
    }
    if let Some((value, part)) = facts.take(Fact::Restart) {
        restart(role, &value, part, job, draft);
    }
    if let Some((failed, part)) = facts.take_number(Fact::FailedIndexes, draft) {
        let value = number(part, failed.saturating_add(1).min(instances.max(1)));
        draft.field(&["roles", role, "completion", "min_failed"], part, value);
    }
    if let Some((value, part)) = facts.take(Fact::PodFailures) {
        pod_failures(role, &value, part, draft);
    }
    if let Some((value, part)) = facts.take(Fact::SuccessRules) {
        success_rules(role, &value, part, draft);
    }
    if let Some((value, part)) = facts.take(Fact::Policies) {
        volcano(Some(role), &value, part, facts, draft);
    }
    if let Some((_, part)) = facts.take(Fact::MinAvailable) {
        draft.note(part, "`gang` is of the job");
    }
}

/// `restartPolicy` of a group of Kubeflow.
fn restart(role: &str, value: &Node, part: Span, job: &Facts, draft: &mut Draft<'_>) {
    match scalar(value).as_deref() {
        Some("Never") => draft.note(part, "the default"),
        // The number is that of the job.
        Some("OnFailure" | "Always" | "ExitCode") if job.number(Fact::JobRetries).is_some() => {
            draft.note(part, "`retry` of the job has the number");
        }
        Some("OnFailure") => retries(&["roles", role], None, part, draft),
        Some("Always") => draft.note(part, "a job ends when its command does; `retry` repeats failures"),
        Some("ExitCode") => draft.changed(
            part,
            "a failed task is not started again, whatever its exit code",
            "write `retry: {max: 3}` of the role, with `on_exit_codes` for codes from 128 on",
        ),
        other => draft.invalid(part, format!("unknown restart policy `{}`", other.unwrap_or_default()), ""),
    }
}

/// `podFailurePolicy` of a Job.
fn pod_failures(role: &str, value: &Node, part: Span, draft: &mut Draft<'_>) {
    only(value, &["rules"], "`podFailurePolicy`", draft);
    for rule in value.get("rules").map_or(&[][..], Node::items) {
        let at = rule.span;
        let action = text_at(rule, "action").unwrap_or_default();
        let codes = rule.get("onExitCodes");
        let operator = codes.and_then(|codes| text_at(codes, "operator"));
        let list: Vec<u64> = codes
            .and_then(|codes| codes.get("values"))
            .map_or(&[][..], Node::items)
            .iter()
            .filter_map(number_of)
            .collect();
        let conditions = rule.get("onPodConditions").map_or(&[][..], Node::items);
        let is_disruption = !conditions.is_empty()
            && conditions.iter().all(|of| text_at(of, "type").as_deref() == Some("DisruptionTarget"));
        let key = match (action.as_str(), operator.as_deref()) {
            ("Ignore", None) if is_disruption => {
                draft.field(&["roles", role, "retry", "disruptions"], at, string(at, "ignore"));
                continue;
            }
            ("FailJob", None) if is_disruption => {
                draft.note(at, "`failurePolicy` of the JobSet says what a disruption does");
                continue;
            }
            ("Count", _) => {
                draft.note(at, "the default");
                continue;
            }
            ("FailJob" | "FailIndex", Some("In")) => "never_on_exit_codes",
            ("FailJob" | "FailIndex", Some("NotIn")) => "on_exit_codes",
            _ => {
                draft.changed(
                    at,
                    format!("the rule with the action `{action}` for these failures is not kept"),
                    "write `retry` of the role: `on_exit_codes`, `never_on_exit_codes`, `disruptions: ignore`",
                );
                continue;
            }
        };
        // A code that a program cannot end with says nothing.
        let list: Vec<u64> = list.into_iter().filter(|code| *code < 256).collect();
        draft.field(&["roles", role, "retry", key], at, node(at, &json!(list)));
    }
    draft.account.field(part, format!("roles.{role}.retry"));
    // Rules without a number of retries are about the default of the Job.
    let path = ["roles", role, "retry"];
    if draft.get(&path).is_some_and(|retry| retry.get("max").is_none()) {
        let max = if draft.get(&["retry"]).is_some() { 0 } else { DEFAULT_RETRIES };
        draft.set(&["roles", role, "retry", "max"], part, number(part, max));
    }
}

/// `successPolicy` of a Job.
fn success_rules(role: &str, value: &Node, part: Span, draft: &mut Draft<'_>) {
    only(value, &["rules"], "`successPolicy`", draft);
    for rule in value.get("rules").map_or(&[][..], Node::items) {
        only(rule, &["succeededCount", "succeededIndexes"], "a rule", draft);
        let indexes = text_at(rule, "succeededIndexes");
        let count = rule.get("succeededCount").and_then(number_of).or(indexes.as_deref().map(length));
        let Some(count) = count else {
            draft.invalid(rule.span, "the rule has neither `succeededCount` nor `succeededIndexes`", "");
            continue;
        };
        let path = ["roles", role, "completion", "min_succeeded"];
        draft.set(&path, rule.span, number(rule.span, count.max(1)));
        match indexes {
            Some(indexes) => draft.changed(
                rule.span,
                format!("any {count} instances end the job, not those of `{indexes}` alone"),
                "write these instances as a role of their own, with `completion: {min_succeeded: all}`",
            ),
            None => draft.account.field(rule.span, path.join(".")),
        }
    }
    draft.account.field(part, format!("roles.{role}.completion"));
}

/// How many numbers a list such as `0,2-4` has.
fn length(indexes: &str) -> u64 {
    let of = |part: &str| match part.split_once('-') {
        Some((first, last)) => {
            let number = |text: &str| text.trim().parse::<u64>().unwrap_or(0);
            number(last).saturating_sub(number(first)).saturating_add(1)
        }
        None => 1,
    };
    indexes.split(',').map(of).fold(0, u64::saturating_add)
}

/// Those of the job.
pub(super) fn of_job(kind: &Kind, groups: &[Group], job: &mut Facts, draft: &mut Draft<'_>) {
    let has_distributed = draft.get(&["distributed"]).is_some();
    let policy = job.take(Fact::Policies);
    if let Some((value, part)) = policy {
        volcano(None, &value, part, job, draft);
    }
    if let Some((_, part)) = job.take(Fact::MaxRetry) {
        draft.note(part, "no policy restarts the job");
    }
    if let Some((max, part)) = job.take_number(Fact::JobRetries, draft) {
        let launcher = groups.iter().find(|_| kind.framework == Stands::Parts("mpi"));
        if let Some(launcher) = launcher.filter(|_| max > 0) {
            let path = ["roles", launcher.role.as_str()];
            retries(&path, Some(max), part, draft);
            draft.set(&["roles", &launcher.role, "retry", "scope"], part, string(part, "task"));
        } else {
            retries(&[], Some(max), part, draft);
        }
        if max > 0 && launcher.is_none() && !has_distributed && groups.len() > 1 {
            draft.set(&["retry", "scope"], part, string(part, "job"));
        }
        if let Some((rules, at)) = job.take(Fact::JobFailures) {
            job_failures(&rules, at, max, groups, draft);
        }
    }
    if let Some((rules, at)) = job.take(Fact::JobFailures) {
        job_failures(&rules, at, 0, groups, draft);
    }
    success(groups, job, draft);
    if let Some((value, part)) = job.take(Fact::WorkersSucceed) {
        let has_chief = groups.iter().any(|group| group.role == "chief");
        match scalar(&value).as_deref() {
            Some("AllWorkers") if !has_chief => {
                let path = ["roles", "worker", "completion", "min_succeeded"];
                draft.field(&path, part, string(part, "all"));
            }
            _ => draft.note(part, "the default"),
        }
    }
    let all: u64 = groups.iter().map(|group| group.instances).sum();
    // Those that wait for others are not started with them.
    let waits = |group: &&Group| draft.get(&["roles", &group.role, "needs"]).is_some();
    let first: u64 = groups.iter().filter(|group| !waits(group)).map(|group| group.instances).sum();
    match job.take_number(Fact::MinAvailable, draft) {
        Some((min, part)) if min == first => draft.note(part, "all instances start together"),
        Some((min, part)) if min < all && min > 1 => {
            draft.field(&["gang"], part, node(part, &json!({ "min": min })));
        }
        Some((1, part)) if all > 1 => draft.field(&["gang"], part, string(part, "none")),
        Some((_, part)) => draft.note(part, "all instances start together"),
        None => {}
    }
}

/// `successPolicy` of a JobSet.
fn success(groups: &[Group], job: &mut Facts, draft: &mut Draft<'_>) {
    let operator = job.take(Fact::Success);
    let targets = job.take(Fact::SuccessRoles);
    let is_any = operator.as_ref().and_then(|(value, _)| scalar(value)).as_deref() == Some("Any");
    let named: Vec<(String, Span)> = targets.as_ref().map(|(value, _)| texts(value)).unwrap_or_default();
    let threshold = if is_any { json!(1) } else { json!("all") };
    let is_all = !is_any && (named.is_empty() || named.len() == groups.len());
    for (_, part) in operator.into_iter().chain(targets) {
        if is_all {
            draft.note(part, "the default");
        } else {
            draft.account.field(part, "completion.min_succeeded");
        }
    }
    if is_all {
        return;
    }
    let chosen = |group: &&Group| named.is_empty() || named.iter().any(|(name, _)| *name == group.source);
    for group in groups.iter().filter(chosen) {
        let at = named.iter().find(|(name, _)| *name == group.source).map_or(group.at, |(_, at)| *at);
        draft.set(&["roles", &group.role, "completion", "min_succeeded"], at, node(at, &threshold));
    }
}

/// `failurePolicy.rules` of a JobSet.
fn job_failures(value: &Node, part: Span, max: u64, groups: &[Group], draft: &mut Draft<'_>) {
    for rule in value.items() {
        let at = rule.span;
        let action = text_at(rule, "action").unwrap_or_default();
        let named = rule.get("targetReplicatedJobs").map(texts).unwrap_or_default();
        let roles: Vec<&Group> = groups
            .iter()
            .filter(|group| named.is_empty() || named.iter().any(|(name, _)| *name == group.source))
            .collect();
        let has_reasons = ["onJobFailureReasons", "onJobFailureMessagePatterns"]
            .iter()
            .any(|key| rule.get(key).is_some_and(|list| !list.items().is_empty()));
        let is_disruption = text_at(rule, "onJobFailureReasons").is_none()
            && rule
                .get("onJobFailureReasons")
                .map(texts)
                .unwrap_or_default()
                .iter()
                .any(|(of, _)| of == "PodFailurePolicy");
        if is_disruption && action == "RestartJobSetAndIgnoreMaxRestarts" {
            // The pods say that a disruption fails their Job.
            for group in roles {
                // Its codes are those of the job then.
                let own = draft.get(&["roles", &group.role, "retry"]).cloned();
                for entry in
                    own.iter().flat_map(Node::entries).filter(|entry| entry.key.contains("on_exit_codes"))
                {
                    draft.set(&["retry", &entry.key], entry.key_span, entry.value.clone());
                }
                draft.remove(&["roles", &group.role, "retry"]);
            }
            draft.set(&["retry", "max"], at, number(at, max));
            if draft.get(&["distributed"]).is_none() {
                draft.set(&["retry", "scope"], at, string(at, "job"));
            }
            draft.field(&["retry", "disruptions"], at, string(at, "ignore"));
            continue;
        }
        if has_reasons {
            draft.changed(
                at,
                format!("`{action}` for some reasons of a failure: the reason makes no difference here"),
                "write `retry` of the role, with `on_exit_codes` or `disruptions: ignore`",
            );
            continue;
        }
        let mut retry = Map::new();
        match action.as_str() {
            "FailJobSet" => {
                retry.insert("max".to_owned(), json!(0));
            }
            "RestartJob" => {
                let gates = super::super::nodes::sequence(at, vec![string(at, "RestartJob")]);
                draft.need_of_target(&["kubernetes", "gates"], at, gates);
                retry.insert("max".to_owned(), json!(max));
                retry.insert("scope".to_owned(), json!("role"));
            }
            "RestartJobAndIgnoreMaxRestarts" => {
                retry.insert("max".to_owned(), json!("unlimited"));
                retry.insert("scope".to_owned(), json!("role"));
            }
            "RestartJobSetAndIgnoreMaxRestarts" => {
                retry.insert("max".to_owned(), json!("unlimited"));
                retry.insert("scope".to_owned(), json!("job"));
            }
            _ => {
                draft.note(at, "the default");
                continue;
            }
        }
        for group in roles {
            let path = ["roles", group.role.as_str(), "retry"];
            draft.set(&path, at, node(at, &Json::Object(retry.clone())));
        }
        draft.account.field(at, "retry");
    }
    draft.account.field(part, "retry");
}

/// `policies` of a Volcano Job or of one of its tasks.
fn volcano(role: Option<&str>, value: &Node, part: Span, facts: &mut Facts, draft: &mut Draft<'_>) {
    let path: Vec<&str> = role.map_or(vec!["retry"], |role| vec!["roles", role, "retry"]);
    let mut codes: Vec<u64> = Vec::new();
    let mut restarts: Option<(&str, Span)> = None;
    let mut is_failure = false;
    for policy in value.items() {
        let at = policy.span;
        let action = text_at(policy, "action").unwrap_or_default();
        let events = ["event", "events"].iter().filter_map(|key| policy.get(key)).flat_map(texts);
        let events: Vec<String> = events.map(|(event, _)| event).collect();
        let is = |name: &str| events.iter().any(|event| event == name || event == "*");
        let code = policy.get("exitCode").and_then(number_of);
        let scope = match action.as_str() {
            "RestartJob" => "job",
            "RestartPod" => "task",
            _ => "role",
        };
        match action.as_str() {
            "CompleteJob" if is("TaskCompleted") => {
                if let Some(role) = role {
                    let path = ["roles", role, "completion", "min_succeeded"];
                    draft.field(&path, at, string(at, "all"));
                } else {
                    draft.changed(
                        at,
                        "the job ends when all roles have succeeded",
                        "write `completion: {min_succeeded: all}` of the role that ends it",
                    );
                }
            }
            "RestartJob" | "RestartTask" | "RestartPod" | "RestartPartition"
                if is("PodFailed") || is("PodEvicted") || code.is_some() =>
            {
                codes.extend(code);
                is_failure |= is("PodFailed");
                restarts = restarts.or(Some((scope, at)));
                draft.account.field(at, path.join("."));
            }
            "AbortJob" | "TerminateJob" | "CompleteJob" => draft.note(at, "the first failure ends the job"),
            _ => draft.note(at, "the default"),
        }
    }
    draft.account.field(part, role.map_or("retry".to_owned(), |role| format!("roles.{role}")));
    let Some((scope, at)) = restarts else { return };
    if codes.is_empty() && !is_failure {
        draft.changed(at, "other failures are retried too, not only evictions", "");
    }
    let max = facts.take_number(Fact::MaxRetry, draft);
    // Volcano counts a failure before it compares.
    let mut retry = json!({"max": max.map_or(2, |(count, _)| count.saturating_sub(1)), "scope": scope});
    if !codes.is_empty() && !is_failure {
        retry["on_exit_codes"] = json!(codes);
    }
    if let Some((_, part)) = max {
        draft.account.field(part, path.join("."));
    }
    draft.set(&path, at, node(at, &retry));
}
