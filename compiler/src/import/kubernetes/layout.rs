//! Groups of pods to roles: how many instances, what each waits for, and when the job ends.

use jobc_schema::cron::Cron;

use crate::document::{Entry, Node};
use crate::openpai::{MAX_ROLE_NAME, converted};
use crate::source::Span;

use super::super::amounts::duration;
use super::super::draft::Draft;
use super::super::nodes::{number, string};
use super::super::values::{scalar, texts};
use super::facts::{Fact, Facts};
use super::group::Group;
use super::kinds::Kind;
use super::policies;

/// Decides how many instances each group has, and writes it.
pub(super) fn count(kind: &Kind, groups: &mut [Group], job: &mut Facts, draft: &mut Draft<'_>) {
    // The fields of a kind with one group are those of the job.
    let of_job = [Fact::Completions, Fact::Parallelism, Fact::Replicas];
    // The leader is one of them; without pods of its own it is equal to the workers.
    let size = job.number(Fact::Size);
    let last = groups.last().map(|group| group.at).unwrap_or_default();
    let leaders = u64::from(groups.len() > 1);
    for group in groups.iter_mut() {
        if kind.places.len() == 1 && kind.places[0].fields.is_empty() {
            for fact in of_job {
                if let Some((value, part)) = job.take(fact) {
                    let entry = Entry { key: String::new(), key_span: part, value };
                    group.facts.put(fact, &entry);
                }
            }
        }
        let mut of = |fact: Fact| group.facts.take_number(fact, draft);
        let (completions, parallelism) = (of(Fact::Completions), of(Fact::Parallelism));
        let (replicas, hosts) = (of(Fact::Replicas), of(Fact::Hosts));
        let pods = completions.or(parallelism).map_or(1, |(count, _)| count.max(1));
        let copies = replicas.map_or(1, |(count, _)| count) * hosts.map_or(1, |(count, _)| count.max(1));
        group.instances = pods.saturating_mul(copies);
        if let Some(size) = size.filter(|_| group.at == last) {
            group.instances = size.saturating_sub(leaders).max(1);
        }
        let path = ["roles", group.role.as_str(), "instances"];
        let parts = [completions, parallelism, replicas, hosts];
        for (count, part) in parts.into_iter().flatten() {
            if Some((count, part)) == parallelism && completions.is_some() {
                continue;
            }
            match count {
                0 if Some((count, part)) == replicas => {
                    draft.refuse(part, "a group without pods", "remove it, or write the number of its pods");
                }
                1 => draft.note(part, "the default"),
                _ => draft.account.field(part, path.join(".")),
            }
        }
        if let (Some((pods, _)), Some((at_once, part))) = (completions, parallelism) {
            if at_once < pods && at_once > 0 {
                let path = ["roles", group.role.as_str(), "parallel"];
                draft.field(&path, part, number(part, at_once.saturating_mul(copies)));
            } else {
                draft.note(part, "all instances run at once");
            }
        }
        if let (None, Some((count, part))) = (completions, parallelism.filter(|(count, _)| *count > 1)) {
            draft.changed(
                part,
                format!("all {count} instances must succeed; without `completions` one is enough"),
                "`completion: {min_succeeded: 1}` of the role makes one enough",
            );
        }
        if let Some((_, part)) = group.facts.take(Fact::CompletionMode) {
            draft.note(part, "every instance has its number");
        }
        let at = completions.or(parallelism).or(replicas).map_or(group.at, |(_, part)| part);
        if group.instances > 1 {
            draft.set(&path, at, number(at, group.instances));
        }
    }
    if let Some((_, part)) = job.take(Fact::CompletionMode) {
        draft.note(part, "every instance has its number");
    }
    if let Some((value, part)) = job.take(Fact::Size) {
        draft.account.field(part, "instances");
        if super::facts::number_of(&value).is_none() {
            draft.invalid(part, "the value is not a number", "");
        }
    }
    match job.take_number(Fact::Groups, draft) {
        Some((1, part)) => draft.note(part, "the default"),
        Some((_, part)) if draft.setting(&["kubernetes", "kind"]).is_none() => {
            draft.changed(
                part,
                "one group of pods is started, not several",
                "start the job once for each group",
            );
        }
        Some((count, part)) => draft.target(&["kubernetes", "replicas"], part, number(part, count)),
        None => {}
    }
}

/// Makes one role of a first group and the others, where their pods are equal; returns the place of the first.
pub(super) fn merge(groups: &mut Vec<Group>, draft: &mut Draft<'_>) -> Option<Span> {
    let [first, second] = &groups[..] else { return None };
    let is_equal = first.template.to_json() == second.template.to_json() && first.instances == 1;
    if !is_equal {
        return None;
    }
    let first = groups.remove(0);
    draft.remove(&["roles", &first.role]);
    let only = &mut groups[0];
    only.instances += first.instances;
    let path = ["roles", only.role.as_str(), "instances"];
    draft.account.field(first.at, path.join("."));
    let place = |group: &Group| group.spec().map(|spec| spec.span);
    let is_apart = place(&first) != place(only);
    first.facts.finish(draft);
    draft.set(&path, only.at, number(only.at, only.instances));
    // Of an alias, the comments stand at the first.
    is_apart.then_some(first.template.span)
}

/// Writes what the facts of groups and of the job say besides their numbers.
pub(super) fn finish(kind: &Kind, groups: &mut [Group], mut job: Facts, draft: &mut Draft<'_>) {
    let is_single = groups.len() == 1;
    let names: Vec<(String, String)> =
        groups.iter().map(|group| (group.source.clone(), group.role.clone())).collect();
    for (at, group) in groups.iter_mut().enumerate() {
        let mut facts = std::mem::take(&mut group.facts);
        if let Some((value, part)) = facts.take(Fact::Suspend) {
            group.facts.put(Fact::Suspend, &Entry { key: String::new(), key_span: part, value });
        }
        let role = group.role.clone();
        if is_single {
            for fact in [
                Fact::Retries,
                Fact::RetriesPerIndex,
                Fact::PodFailures,
                Fact::SuccessRules,
                Fact::FailedIndexes,
            ] {
                if let Some((value, part)) = job.take(fact) {
                    facts.put(fact, &Entry { key: String::new(), key_span: part, value });
                }
            }
        }
        if let Some((value, part)) = facts.take(Fact::Needs) {
            needs(&role, &value, part, &names, draft);
        }
        if let Some((value, part)) = facts.take(Fact::JobTimeout) {
            let path: &[&str] = if is_single { &["timeout"] } else { &["roles", &role, "timeout"] };
            time(path, &value, part, draft);
        }
        if let Some((value, part)) = facts.take(Fact::Ttl) {
            time(&["kubernetes", "ttl"], &value, part, draft);
        }
        policies::of_group(&role, group.instances, &mut facts, &job, draft);
        if at > 0 && ordered(&job) {
            let before = &names[at - 1].1;
            let state = running(before, draft);
            draft.set(&["roles", &role, "needs", before], group.at, string(group.at, state));
        }
        facts.finish(draft);
    }
    schedule(is_single && groups.iter().all(|group| group.instances == 1), &mut job, draft);
    if let Some((_, part)) = job.take(Fact::Order) {
        draft.account.field(part, "needs");
    }
    if let Some((value, part)) = job.take(Fact::JobTimeout) {
        time(&["timeout"], &value, part, draft);
    }
    if let Some((value, part)) = job.take(Fact::Ttl) {
        time(&["kubernetes", "ttl"], &value, part, draft);
    }
    let suspended = groups.iter_mut().filter_map(|group| group.facts.take(Fact::Suspend));
    let suspended: Vec<(Node, Span)> = suspended.chain(job.take(Fact::Suspend)).collect();
    for (value, part) in suspended {
        let is_queued = draft.setting(&["kubernetes", "queue", "kueue"]).is_some();
        if value.to_json() != true {
            draft.note(part, "the default");
        } else if is_queued {
            draft.note(part, "Kueue suspends the job, and resumes it");
        } else {
            draft.target(&["kubernetes", "suspend"], part, value);
        }
    }
    policies::of_job(kind, groups, &mut job, draft);
    job.finish(draft);
}

fn ordered(job: &Facts) -> bool {
    job.text(Fact::Order).as_deref() == Some("InOrder")
}

/// A time in seconds, of the job or of a target.
fn time(path: &[&str], value: &Node, part: Span, draft: &mut Draft<'_>) {
    let Some(seconds) = super::facts::number_of(value) else {
        return draft.invalid(part, "the value is not a number of seconds", "");
    };
    let value = string(part, duration(seconds));
    match path {
        ["kubernetes", ..] if seconds == 0 => draft.note(part, "jobc deletes no job at once"),
        ["kubernetes", ..] => draft.target(path, part, value),
        _ => draft.field(path, part, value),
    }
}

/// What a role that is up has reached: ready where it has a check.
pub(super) fn running(role: &str, draft: &Draft<'_>) -> &'static str {
    if draft.get(&["roles", role, "ready"]).is_some() { "ready" } else { "started" }
}

/// `dependsOn`: a list of `{name, status}`, or of names.
fn needs(role: &str, value: &Node, part: Span, names: &[(String, String)], draft: &mut Draft<'_>) {
    let of_maps = value.items().iter().filter_map(|item| {
        let is_complete = item.get("status").and_then(Node::as_str) == Some("Complete");
        Some((item.get("name").and_then(scalar)?, is_complete, item.span))
    });
    let plain = texts(value).into_iter().map(|(name, span)| (name, false, span));
    let items: Vec<(String, bool, Span)> = of_maps.chain(plain).collect();
    for (name, is_complete, at) in items {
        let Some((_, needed)) = names.iter().find(|(source, _)| *source == name) else {
            draft.invalid(at, format!("unknown group of pods `{name}`"), "");
            continue;
        };
        let state = if is_complete { "succeeded" } else { running(needed, draft) };
        draft.field(&["roles", role, "needs", needed], at, string(at, state));
    }
    draft.account.field(part, format!("roles.{role}.needs"));
}

/// A name of a role that no other group has.
pub(super) fn free_name(name: &str, taken: &[Group]) -> Option<String> {
    let name = converted(name, MAX_ROLE_NAME, true)?;
    (!taken.iter().any(|group| group.role == name)).then_some(name)
}

/// Writes when a CronJob starts its job, where a job says the same.
fn schedule(is_one_pod: bool, job: &mut Facts, draft: &mut Draft<'_>) {
    let rest = [Fact::TimeZone, Fact::Overlap];
    let Some((value, part)) = job.take(Fact::Schedule) else { return };
    let is_read = scalar(&value).is_some_and(|text| Cron::parse(&text).is_ok());
    if !is_one_pod || !is_read {
        draft.changed(
            part,
            "the job runs when it is started, not by a schedule",
            "a timer of the host or of CI that calls `jobc submit` starts it again",
        );
        for (_, part) in rest.into_iter().filter_map(|fact| job.take(fact)) {
            draft.note(part, "`jobc submit` starts the job once");
        }
        return;
    }
    draft.field(&["schedule", "cron"], part, value);
    if let Some((zone, part)) = job.take(Fact::TimeZone) {
        draft.field(&["schedule", "zone"], part, zone);
    }
    let overlap = job.take(Fact::Overlap);
    let (is_written, at) = (overlap.is_some(), overlap.as_ref().map_or(part, |(_, part)| *part));
    let word = match overlap.and_then(|(value, _)| scalar(&value)).as_deref() {
        Some("Forbid") => "skip",
        Some("Replace") => "replace",
        // That of Kubernetes.
        _ => "allow",
    };
    let path = ["schedule", "overlap"];
    if is_written {
        draft.field(&path, at, string(at, word));
    } else {
        draft.set(&path, at, string(at, word));
    }
}
