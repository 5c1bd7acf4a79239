//! J0324: a GPU model that no table has.

use crate::check::gpu::{self, HostGpuFacts};
use crate::check::view::{RoleView, View};
use crate::diagnostic::Location;
use crate::diagnostic::{Diagnostic, Safety, Sink, codes};
use crate::stdlib::models;
use crate::suggest;

/// Warns of a name that is probably misspelt; a new card may simply be younger than the table.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    let there = HostGpuFacts::of(view).cards.unwrap_or_default();
    for role in &view.roles {
        let Some(requested) = gpu::nvidia(role) else { continue };
        for (index, name) in requested.models.iter().enumerate() {
            if there.iter().any(|known| known.name.eq_ignore_ascii_case(name)) {
                continue;
            }
            match models::find(name) {
                None => unknown(role, index, name, sink),
                Some(found) => variant(role, index, name, &found, sink),
            }
        }
    }
}

fn unknown(role: &RoleView<'_>, index: usize, name: &str, sink: &mut Sink) {
    let at = gpu::model_at(role, index);
    let message = format!("unknown GPU model `{name}`");
    let mut diagnostic = Diagnostic::warning(codes::UNKNOWN_MODEL, message).at(&at, "");
    let names = || models::all().iter().map(|model| model.name.as_str());
    if let Some(near) = suggest::nearest(name, names()) {
        diagnostic = diagnostic.note(format!("the nearest known name is `{near}`")).fix(
            format!("write `{near}`"),
            Location::value(&at),
            near,
            Safety::Unsafe,
        );
    } else {
        diagnostic = diagnostic
            .note("write the name as the vendor prints it, such as `A100`, `A100-80GB` or `RTX-4090`");
    }
    sink.push(diagnostic);
}

fn variant(role: &RoleView<'_>, index: usize, name: &str, found: &models::ModelMatch, sink: &mut Sink) {
    if found.memory_gb.is_none() || found.model.variants.is_empty() || found.variants().next().is_some() {
        return;
    }
    let model = &found.model.name;
    let sizes: Vec<String> =
        found.model.variants.iter().map(|v| format!("{model}-{}GB", v.memory_gb)).collect();
    let message = format!("unknown memory size of `{model}`: `{name}`");
    sink.push(
        Diagnostic::warning(codes::UNKNOWN_MODEL, message)
            .at(&gpu::model_at(role, index), "")
            .note(format!("known: {}", suggest::list(sizes.iter().map(String::as_str)))),
    );
}
