//! J0326: a MIG profile that no card, or not that card, has.

use jobc_schema::plan::{GpuPlan, SharePlan};

use crate::check::gpu;
use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Location, Safety, Sink, codes};
use crate::stdlib::{mig, models};
use crate::suggest;

/// Refuses invalid profiles and profiles that the named cards do not support; warns of a profile that no table has.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in &view.roles {
        let Some(requested) = gpu::nvidia(role) else { continue };
        let Some(share) = &requested.share else { continue };
        let Some(profile) = share.profile.as_deref() else { continue };
        let cards = gpu::cards(&requested.models);
        let found = unknown(role, profile)
            .or_else(|| check_profile(role, profile, &cards))
            .or_else(|| too_many(role, requested, share, profile, &cards));
        if let Some(diagnostic) = found {
            sink.push(diagnostic);
        }
    }
}

fn unknown(role: &RoleView<'_>, profile: &str) -> Option<Diagnostic> {
    let at = gpu::gpu_at(role).keys(["share", "profile"]);
    if mig::is_profile(profile) && mig::cards_with(profile).next().is_some() {
        return None;
    }
    let mut diagnostic = if mig::is_profile(profile) {
        Diagnostic::warning(codes::MIG_PROFILE, format!("unknown MIG profile `{profile}`"))
    } else {
        let message = format!("`{profile}` is not a MIG profile: write for example `1g.10gb`");
        Diagnostic::error(codes::MIG_PROFILE, message)
    };
    diagnostic = diagnostic.at(&at, "");
    if let Some(near) = nearest(profile) {
        diagnostic = diagnostic.note(format!("the nearest known profile is `{near}`")).fix(
            format!("write `{near}`"),
            Location::value(&at),
            near,
            Safety::Unsafe,
        );
    }
    Some(diagnostic)
}

/// The profile of the same number of compute slices whose memory is nearest, else the nearest spelling.
fn nearest(profile: &str) -> Option<&'static str> {
    let size = |name: &str| -> Option<(String, u64)> {
        let (slices, memory) = mig::whole_instance(name).split_once('.')?;
        let digits: String = memory.chars().take_while(char::is_ascii_digit).collect();
        Some((slices.to_ascii_lowercase(), digits.parse().ok()?))
    };
    let plain = || mig::names().into_iter().filter(|name| !name.contains(['+', '-']));
    let same = size(profile).and_then(|(slices, memory)| {
        plain()
            .filter_map(|name| Some((name, size(name)?)))
            .filter(|(_, known)| known.0 == slices)
            .min_by_key(|(_, known)| known.1.abs_diff(memory))
            .map(|(name, _)| name)
    });
    same.or_else(|| suggest::nearest(profile, plain()))
}

fn check_profile(
    role: &RoleView<'_>,
    profile: &str,
    cards: &[(&str, models::ModelMatch)],
) -> Option<Diagnostic> {
    if cards.is_empty() || cards.iter().any(|(_, card)| room(card, profile).is_some()) {
        return None;
    }
    let names = suggest::list(cards.iter().map(|(name, _)| *name));
    let at = gpu::gpu_at(role);
    let known: indexmap::IndexSet<&str> = cards
        .iter()
        .flat_map(|(_, card)| card.variants())
        .filter_map(|variant| mig::profiles(variant.mig.as_deref()?))
        .flatten()
        .map(mig::Profile::name)
        .filter(|name| !name.contains(['+', '-']))
        .collect();
    let diagnostic = if known.is_empty() {
        // Models whose memory is not listed may be cut all the same; those listed without a table cannot.
        let listed = cards.iter().all(|(_, card)| !card.model.variants.is_empty());
        let message = format!("no MIG support on {names}");
        let new = if listed { Diagnostic::error } else { Diagnostic::warning };
        new(codes::MIG_PROFILE, message)
            .note(format!("cards with `{profile}`: {}", suggest::list(mig::cards_with(profile))))
    } else {
        Diagnostic::warning(codes::MIG_PROFILE, format!("{names} has no MIG profile `{profile}`"))
            .note(format!("it has {}", suggest::list(known)))
    };
    Some(diagnostic.at(&at.keys(["share", "profile"]), "").at(&at.key("model"), ""))
}

fn too_many(
    role: &RoleView<'_>,
    requested: &GpuPlan,
    share: &SharePlan,
    profile: &str,
    cards: &[(&str, models::ModelMatch)],
) -> Option<Diagnostic> {
    if !share.same_card {
        return None;
    }
    let max = if cards.is_empty() {
        mig::cards_with(profile).filter_map(|card| fits(card, profile)).max()
    } else {
        cards.iter().filter_map(|(_, card)| room(card, profile)).max()
    };
    let max = max.filter(|&max| requested.count > max)?;
    let message = format!(
        "role `{}` requests {} slices `{profile}` of one card, which has room for {max}",
        role.plan.name, requested.count
    );
    let at = gpu::gpu_at(role);
    Some(
        Diagnostic::warning(codes::MIG_PROFILE, message)
            .at(&at.key("count"), "")
            .at(&at.keys(["share", "same_card"]), "")
            .note("request fewer slices or a smaller profile, or leave `same_card` out"),
    )
}

/// How many of a profile fit on a card of that name.
fn room(card: &models::ModelMatch, profile: &str) -> Option<u32> {
    card.variants().filter_map(|variant| fits(variant.mig.as_deref()?, profile)).max()
}

fn fits(card: &str, profile: &str) -> Option<u32> {
    let whole = mig::whole_instance(profile);
    mig::profiles(card)?.iter().find(|known| known.name() == whole).map(mig::Profile::max_instances)
}
