//! J0327: a role that none of the target's cards can serve.

use jobc_schema::Bytes;
use jobc_schema::gpu::{Gpu, Vendor};
use jobc_schema::plan::{GpuPlan, SharePlan};

use crate::check::gpu::{self, Card, HostGpuFacts};
use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Severity, Sink, codes};
use crate::stdlib::Version;
use crate::suggest;

/// Refuses a role if no kind of card meets all of its requirements.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    let declared = HostGpuFacts::of(view);
    for role in &view.roles {
        let Some(requested) = role.plan.gpus() else { continue };
        let Some(cards) = declared.cards_of(requested.vendor) else { continue };
        if let Some(missing) = missing(requested, &declared, &cards) {
            sink.push(report(role, &declared, &missing));
        }
    }
}

/// A requirement that no card meets.
struct UnmetNeed {
    /// As text: `a GPU with 40GiB`.
    what: String,
    /// The key below `resources.gpu` that asks for it, where one does.
    key: Option<&'static str>,
    /// Whether the table may lack it.
    severity: Severity,
}

/// The first requirement that no remaining card meets.
fn missing(requested: &GpuPlan, declared: &HostGpuFacts<'_>, cards: &[&Card<'_>]) -> Option<UnmetNeed> {
    let error = |what: String, key| Some(UnmetNeed { what, key, severity: Severity::Error });
    if cards.is_empty() {
        // A list of models names NVIDIA's cards only.
        let silent = requested.vendor != Vendor::Nvidia && declared.cards_at.is_some();
        return if silent { None } else { error(format!("{}s", requested.vendor.card()), None) };
    }
    let mut left = cards.to_vec();
    if !requested.models.is_empty() {
        left.retain(|card| requested.models.iter().any(|wanted| card.is(wanted)));
        if left.is_empty() {
            return error(suggest::list(requested.models.iter().map(String::as_str)), Some("model"));
        }
    }
    if let Some(bytes) = requested.memory_bytes {
        left.retain(|card| card.is_smaller(bytes) != Some((true, true)));
        if left.is_empty() {
            return error(format!("a GPU with {}", Bytes(bytes)), Some("memory"));
        }
    }
    if let Some(wanted) = requested.compute_capability.as_deref().and_then(Version::parse) {
        left.retain(|card| card.capability().is_none_or(|has| has >= wanted));
        if left.is_empty() {
            return error(format!("compute capability {wanted}"), Some("compute_capability"));
        }
    }
    match &requested.share {
        Some(SharePlan { profile: Some(profile), .. }) => instances(profile, requested.count, &mut left),
        Some(share) => slices(share, requested.count, &mut left),
        // All of a host's cards may be of several kinds.
        None if !requested.all => whole(requested.count, &mut left),
        None => None,
    }
}

/// Slices by memory or cores: each on a card of its own, or all on one (spec section 5, `share`).
fn slices(share: &SharePlan, count: u32, left: &mut Vec<&Card<'_>>) -> Option<UnmetNeed> {
    let error = |what, key| Some(UnmetNeed { what, key: Some(key), severity: Severity::Error });
    if let Some(each) = share.memory_bytes {
        let on_one_card = each.saturating_mul(if share.same_card { count.into() } else { 1 });
        left.retain(|card| card.is_smaller(on_one_card) != Some((true, true)));
        if left.is_empty() {
            let size = Bytes(each);
            return if on_one_card == each {
                error(format!("a slice of {size}"), "share")
            } else {
                error(format!("{count} slices of {size} on one card"), "count")
            };
        }
    }
    match share.cores_percent {
        Some(cores) if share.same_card && cores.saturating_mul(count) > 100 => {
            error(format!("{count} slices of {cores} % of the cores on one card"), "count")
        }
        _ if share.same_card => None,
        _ => too_many(count, left.iter().map(|card| card.count), "slices on different cards of one host"),
    }
}

/// MIG instances: the existing ones if they are known, otherwise those that the card supports.
fn instances(profile: &str, count: u32, left: &mut Vec<&Card<'_>>) -> Option<UnmetNeed> {
    let what = format!("MIG instances `{profile}`");
    let certain = left.iter().all(|card| card.mig.is_some());
    left.retain(|card| match card.mig {
        Some(there) => there.contains_key(profile),
        None => card.has_profile(profile) != Some(false),
    });
    if left.is_empty() {
        let severity = if certain { Severity::Error } else { Severity::Warning };
        return Some(UnmetNeed { what, key: Some("share"), severity });
    }
    let max = left.iter().map(|card| card.mig.and_then(|there| there.get(profile)).copied());
    too_many(count, max, &what)
}

/// Whole cards: those without MIG instances.
fn whole(count: u32, left: &mut Vec<&Card<'_>>) -> Option<UnmetNeed> {
    left.retain(|card| card.mig.is_none_or(indexmap::IndexMap::is_empty));
    if left.is_empty() {
        let what = "whole cards".to_owned();
        return Some(UnmetNeed { what, key: None, severity: Severity::Error });
    }
    too_many(count, left.iter().map(|card| card.count), "GPUs of one host")
}

/// Requests for more cards than a host has of any kind; `None` if the number is unknown.
fn too_many(count: u32, there: impl Iterator<Item = Option<u32>>, what: &str) -> Option<UnmetNeed> {
    let max = there.collect::<Option<Vec<u32>>>()?.into_iter().max()?;
    (count > max).then(|| UnmetNeed {
        what: format!("{count} {what}"),
        key: Some("count"),
        severity: Severity::Error,
    })
}

fn report(role: &RoleView<'_>, declared: &HostGpuFacts<'_>, missing: &UnmetNeed) -> Diagnostic {
    let who = &declared.who;
    let cards: Vec<String> = declared.cards.iter().flatten().map(Card::words).collect();
    let has = if cards.is_empty() { "none".to_owned() } else { cards.join(", ") };
    let message = format!("role `{}` requests {}, and {who} has {has}", role.plan.name, missing.what);
    let at = gpu::gpu_at(role);
    let rules = role.spec.and_then(|spec| spec.resources.as_ref()).and_then(|r| r.gpu.as_ref());
    let place = match missing.key {
        Some(key) if matches!(rules, Some(Gpu::Rules(_))) => at.key(key),
        _ => at,
    };
    let advice = if declared.found {
        "request what the host has, or run the job elsewhere; `jobc run --no-gpu` runs it here without GPUs"
    } else {
        "request what the target has, or build for another target"
    };
    let diagnostic =
        Diagnostic::new(codes::TARGET_MODELS, missing.severity, message).at(&place, "").note(advice);
    HostGpuFacts::label(diagnostic, declared.cards_at.as_ref(), "the target's cards")
}
