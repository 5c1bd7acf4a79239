//! J0325: a role that requests more than any card of that model has.

use jobc_schema::{Bytes, Pointer};

use crate::check::gpu;
use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Severity, Sink, codes};
use crate::stdlib::{Version, models};

/// Rejects memory or a compute capability that none of the named models has.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in &view.roles {
        let Some(requested) = gpu::nvidia(role) else { continue };
        let cards = gpu::cards(&requested.models);
        // A name that is not in a table may be a card with more.
        if cards.is_empty() || cards.len() < requested.models.len() {
            continue;
        }
        let at = gpu::gpu_at(role);
        if let Some(bytes) = requested.memory_bytes {
            memory(role, &cards, bytes, &at.key("memory"), "`gpu.memory`", sink);
        }
        if let Some(bytes) = requested.share.as_ref().and_then(|share| share.memory_bytes) {
            memory(role, &cards, bytes, &at.keys(["share", "memory"]), "a slice", sink);
        }
        let capability = requested.compute_capability.as_deref().and_then(Version::parse);
        if let Some(wanted) = capability {
            let has =
                |card: &models::ModelMatch| Version::parse(&card.model.cc).is_some_and(|cc| cc >= wanted);
            if !cards.iter().any(|(_, card)| has(card)) {
                let message = format!(
                    "role `{}` requests compute capability {wanted}, and {}",
                    role.plan.name,
                    list(&cards, |card| Some(card.model.cc.clone()))
                );
                sink.push(
                    Diagnostic::error(codes::CARD_TOO_SMALL, message)
                        .at(&at.key("compute_capability"), "")
                        .at(&at.key("model"), "")
                        .note("request less, or a newer model"),
                );
            }
        }
    }
}

fn memory(
    role: &RoleView<'_>,
    cards: &[(&str, models::ModelMatch)],
    bytes: u64,
    at: &Pointer,
    what: &str,
    sink: &mut Sink,
) {
    if !cards.iter().all(|(_, card)| gpu::is_smaller(card, bytes) == Some(true)) {
        return;
    }
    let sure = cards.iter().all(|(_, card)| card.model.verified);
    let severity = if sure { Severity::Error } else { Severity::Warning };
    let message = format!(
        "{what} of {} is more than the card has: {}",
        Bytes(bytes),
        list(cards, |card| card.max_memory_gb().map(|gb| format!("{gb} GB")))
    );
    sink.push(
        Diagnostic::new(codes::CARD_TOO_SMALL, severity, message)
            .at(at, "")
            .at(&gpu::gpu_at(role).key("model"), "")
            .note("request less memory, or a larger model"),
    );
}

/// `` `T4` has 16 GB, `A10` has 24 GB ``.
fn list(cards: &[(&str, models::ModelMatch)], has: impl Fn(&models::ModelMatch) -> Option<String>) -> String {
    let each = cards.iter().filter_map(|(name, card)| Some(format!("`{name}` has {}", has(card)?)));
    each.collect::<Vec<_>>().join(", ")
}
