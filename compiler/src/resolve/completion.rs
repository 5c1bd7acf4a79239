//! When a role ends the job, and how often it is retried.

use std::collections::BTreeSet;

use jobc_schema::Pointer;
use jobc_schema::distributed::MemberPart;
use jobc_schema::plan::{CompletionPlan, RetryPlan};
use jobc_schema::role::{Disruptions, Retry, RetryScope, Role, Threshold, ThresholdWord, UNLIMITED_RETRIES};

use super::context::Context;
use super::distributed::Rendezvous;
use crate::diagnostic::{Diagnostic, Location, Safety, Sink, codes};

/// The thresholds of a role. By default, it fails the job at its first failure and never makes it succeed. An elastic
/// job succeeds when the minimum number of instances has succeeded, and fails when fewer remain. A Ray job succeeds
/// with its head.
pub(super) fn resolve_completion(
    context: &Context<'_>,
    name: &str,
    role: &Role,
    rendezvous: Option<&Rendezvous>,
    at: &Pointer,
    sink: &mut Sink,
) -> CompletionPlan {
    let instances = context.table[name].instances;
    let at = at.key("completion");
    let mut threshold = |written: Option<Threshold>, key: &str, usual: Option<u32>, done: &str| match written
    {
        None => usual,
        Some(Threshold::Word(ThresholdWord::None)) => None,
        Some(Threshold::Word(ThresholdWord::All)) => Some(instances),
        Some(Threshold::Count(count)) => {
            if count > instances {
                let word = if key == "min_succeeded" { "all" } else { "none" };
                let message = format!("{count} instances of `{name}` can never have {done}");
                sink.push(
                    Diagnostic::error(codes::COMPLETION, message)
                        .at(&at.key(key), format!("the role has {instances}"))
                        .note(format!("write `{word}`, or a smaller number"))
                        .fix(
                            format!("write `{word}`"),
                            Location::value(&at.key(key)),
                            format!("\"{word}\""),
                            Safety::Unsafe,
                        ),
                );
            }
            Some(count)
        }
    };
    let spec = role.completion.clone().unwrap_or_default();
    let elastic = rendezvous.filter(|r| r.has(name)).and_then(|r| r.plan.elastic.as_ref());
    let is_head = rendezvous.and_then(|r| r.member(name)).is_some_and(|(_, m)| m.part == MemberPart::Head);
    let (succeeded, failed) = match elastic {
        Some(elastic) => (Some(elastic.min), instances.saturating_sub(elastic.min) + 1),
        // The job ends with the head: its workers serve until then.
        None if is_head => (Some(1), 1),
        None => (None, 1),
    };
    CompletionPlan {
        min_succeeded: threshold(spec.min_succeeded, "min_succeeded", succeeded, "succeeded"),
        min_failed: threshold(spec.min_failed, "min_failed", Some(failed), "failed"),
    }
}

/// The retry rule: the role's own, else the job's, else none.
///
/// A member of a rendezvous that is not elastic is never retried alone: restarting a single rank is
/// useless.
pub(super) fn resolve_retry(
    context: &Context<'_>,
    role: &Role,
    member: bool,
    at: &Pointer,
    sink: &mut Sink,
) -> RetryPlan {
    let usual = if member { RetryScope::Job } else { RetryScope::Task };
    let Some(retry) = role.retry.as_ref().or(context.job.retry.as_ref()) else {
        return RetryPlan {
            max: 0,
            scope: usual,
            on_exit_codes: vec![],
            never_on_exit_codes: vec![],
            backoff_seconds: None,
            disruptions: usual_disruptions(context),
            on: vec![],
            memory_bytes: vec![],
        };
    };
    let sorted =
        |codes: &[u8]| -> Vec<u8> { codes.iter().copied().collect::<BTreeSet<_>>().into_iter().collect() };
    RetryPlan {
        max: retry.max,
        scope: retry.scope.unwrap_or(usual),
        on_exit_codes: sorted(&retry.on_exit_codes),
        never_on_exit_codes: sorted(&retry.never_on_exit_codes),
        backoff_seconds: retry.backoff.map(|t| t.0),
        disruptions: retry.disruptions.unwrap_or_else(|| usual_disruptions(context)),
        on: retry.on.iter().copied().collect::<BTreeSet<_>>().into_iter().collect(),
        memory_bytes: {
            let at = if role.retry.is_some() { at.key("retry") } else { Pointer::ROOT.key("retry") };
            memory_sizes(retry, role, &at, sink)
        },
    }
}

/// Whether failures that the platform causes count, unless `retry` says so.
fn usual_disruptions(context: &Context<'_>) -> Disruptions {
    if context.job.preemption.is_some() { Disruptions::Ignore } else { Disruptions::Count }
}

/// The memory of the attempts after those that ran out of it.
fn memory_sizes(retry: &Retry, role: &Role, at: &Pointer, sink: &mut Sink) -> Vec<u64> {
    let Some(factor) = retry.memory else {
        if retry.max_memory.is_some() {
            let message = "`max_memory` of `retry` has no effect without `memory`";
            let note = "write the factor too, as in `memory: 1.5`";
            sink.push(
                Diagnostic::error(codes::RETRY_MEMORY, message).at(&at.key("max_memory"), "").note(note),
            );
        }
        return vec![];
    };
    let mut refuse = |message: &str, key: &str, note: &str| {
        sink.push(Diagnostic::error(codes::RETRY_MEMORY, message).at(&at.key(key), "").note(note.to_owned()));
        vec![]
    };
    let Some(memory) = role.resources.as_ref().and_then(|resources| resources.memory) else {
        return match role.retry {
            Some(_) => refuse(
                "`memory` of `retry` is a factor of the memory of the role, which has none",
                "memory",
                "give the role some, as in `resources: {memory: 32GiB}`",
            ),
            // That of the job is for the roles that have some.
            None => vec![],
        };
    };
    if retry.max == UNLIMITED_RETRIES && retry.max_memory.is_none() {
        let note = "write the most that an attempt may have, as in `max_memory: 96GiB`";
        return refuse("the memory of unlimited retries grows without end", "memory", note);
    }
    if let Some(max) = retry.max_memory.filter(|max| *max <= memory) {
        let message = format!(
            "`max_memory` {} is not more than the memory of the role, {}",
            max.amount(),
            memory.amount()
        );
        return refuse(&message, "max_memory", "write more, or leave `memory` out of `retry`");
    }
    factor.sizes(memory, retry.max_memory, retry.max)
}
