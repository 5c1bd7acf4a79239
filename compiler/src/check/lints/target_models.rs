//! J0327: a role that none of the target's cards can serve.

use jobc_schema::Bytes;
use jobc_schema::plan::GpuPlan;

use crate::check::gpu;
use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Place, Sink, codes};
use crate::stdlib::{Version, models};
use crate::suggest;

/// Refuses a model, a memory or a compute capability that the target's `gpu.models` rules out.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    let Some(there) = gpu::target(view).map(|gpu| &gpu.models).filter(|models| !models.is_empty()) else {
        return;
    };
    for role in &view.roles {
        let Some(asked) = gpu::nvidia(role) else { continue };
        if let Some((what, key)) = missing(asked, there) {
            sink.push(report(view, role, there, &what, key));
        }
    }
}

/// What none of the target's cards has, and the key that asks for it.
fn missing(asked: &GpuPlan, there: &[String]) -> Option<(String, &'static str)> {
    if !asked.models.is_empty()
        && !asked.models.iter().any(|wanted| there.iter().any(|has| same(wanted, has)))
    {
        return Some((suggest::list(asked.models.iter().map(String::as_str)), "model"));
    }
    let cards = gpu::cards(there);
    if cards.len() < there.len() {
        return None;
    }
    if let Some(bytes) = asked.memory_bytes
        && cards.iter().all(|(_, card)| card.model.verified && gpu::is_smaller(card, bytes) == Some(true))
    {
        return Some((format!("a GPU with {}", Bytes(bytes)), "memory"));
    }
    let wanted = asked.compute_capability.as_deref().and_then(Version::parse)?;
    let less = |card: &models::Found| Version::parse(&card.model.cc).is_some_and(|cc| cc < wanted);
    cards
        .iter()
        .all(|(_, card)| less(card))
        .then(|| (format!("compute capability {wanted}"), "compute_capability"))
}

/// Whether a card of the target may be the one that is asked for.
fn same(wanted: &str, has: &str) -> bool {
    match (models::find(wanted), models::find(has)) {
        (Some(wanted), Some(has)) => {
            let memory = wanted.memory_gb.zip(has.memory_gb);
            wanted.model == has.model && memory.is_none_or(|(a, b)| a == b)
        }
        _ => wanted.eq_ignore_ascii_case(has),
    }
}

fn report(view: &View<'_>, role: &RoleView<'_>, there: &[String], what: &str, key: &str) -> Diagnostic {
    let target = &view.plan.target.name;
    let cards = suggest::list(there.iter().map(String::as_str));
    let message = format!("role `{}` asks for {what}, and target `{target}` has {cards}", role.plan.name);
    Diagnostic::error(codes::TARGET_MODELS, message)
        .at(&gpu::gpu_at(role).key(key), "")
        .at_place(Place::target(&view.target_at(&["kubernetes", "gpu", "models"])), "the target's cards")
        .note("ask for what the target has, or build for another target")
}
