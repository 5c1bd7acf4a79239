//! J0323: a CUDA version that does not build for the card.

use jobc_schema::gpu::Vendor;

use crate::check::gpu::{self, HostGpuFacts, Toolkit};
use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Severity, Sink, codes};
use crate::stdlib::{arch, models};

/// Compares a toolkit with the cards that the role, or else the target, names, and with `compute_capability`.
///
/// A card that the toolkit has dropped is an error where the user wrote both `cuda` and `model`: nothing built with it
/// runs there. An image may still contain programs with their own CUDA, and a card newer than the toolkit may run
/// programs with PTX: both are warnings.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in &view.roles {
        let Some(requested) = gpu::nvidia(role) else { continue };
        let program = gpu::program_toolkit(role);
        let is_asked = program.is_some();
        let Some(toolkit) = program.or_else(|| gpu::image_toolkit(view, role)) else { continue };
        if let Some(cc) = requested.compute_capability.as_deref().filter(|_| requested.models.is_empty()) {
            capability(role, &toolkit, cc, sink);
        }
        let own = !requested.models.is_empty();
        let declared = HostGpuFacts::of(view);
        let there: Vec<String> = declared
            .cards_of(Vendor::Nvidia)
            .map_or(vec![], |cards| cards.iter().map(|card| card.name.to_owned()).collect());
        let names: &[String] = if own { &requested.models } else { &there };
        let cards = gpu::cards(names);
        let dropped = cards.iter().filter(|(_, card)| is_dropped(card, &toolkit)).count();
        for (name, card) in &cards {
            let all_dropped = own && is_asked && dropped == names.len();
            let severity = if all_dropped { Severity::Error } else { Severity::Warning };
            let at = own.then(|| names.iter().position(|n| n == name).unwrap_or(0));
            one_card(role, &toolkit, (name, card), severity, at, &declared.who, sink);
        }
    }
}

fn is_dropped(card: &models::ModelMatch, toolkit: &Toolkit) -> bool {
    arch::cuda_range(&card.model.cc).is_some_and(|range| range.is_after(&toolkit.version))
}

fn one_card(
    role: &RoleView<'_>,
    toolkit: &Toolkit,
    (name, card): (&str, &models::ModelMatch),
    severity: Severity,
    model: Option<usize>,
    who: &str,
    sink: &mut Sink,
) {
    let cc = &card.model.cc;
    let Some(range) = arch::cuda_range(cc) else { return };
    let cuda = &toolkit.version;
    let (severity, what, advice) = if range.is_after(cuda) {
        let last = range.max.unwrap_or_default();
        let what = format!("CUDA {cuda} no longer builds for `{name}` (compute capability {cc})");
        (severity, what, format!("use CUDA {last} or earlier, or a newer card"))
    } else if range.is_before(cuda) {
        let what =
            format!("CUDA {cuda} is older than `{name}` (compute capability {cc}) and does not build for it");
        let advice = format!(
            "use CUDA {} or later; a program that contains PTX may run after the driver has compiled it",
            range.min
        );
        (Severity::Warning, what, advice)
    } else {
        return;
    };
    let mut diagnostic = Diagnostic::new(codes::CUDA_FOR_CARD, severity, what);
    diagnostic = match model {
        Some(index) => diagnostic
            .at(&gpu::model_at(role, index), "")
            .at(&toolkit.at, format!("{} has it", toolkit.whose)),
        None => diagnostic.at(&toolkit.at, "").note(format!("{who} has the card")),
    };
    sink.push(diagnostic.note(advice));
}

fn capability(role: &RoleView<'_>, toolkit: &Toolkit, cc: &str, sink: &mut Sink) {
    let Some(range) = arch::cuda_range(cc) else { return };
    let cuda = &toolkit.version;
    let mut better = None;
    let (what, advice) = if range.is_after(cuda) {
        let first = arch::all()
            .iter()
            .filter(|arch| arch.verified.unwrap_or(true))
            .find(|arch| arch::cuda_range(&arch.cc).is_some_and(|r| !r.is_after(cuda) && !r.is_before(cuda)));
        let what = format!(
            "role `{}` accepts cards of compute capability {cc}, for which CUDA {cuda} no longer builds",
            role.plan.name
        );
        better = first.map(|arch| arch.cc.clone());
        (
            what,
            first.map_or_else(
                || "use an earlier CUDA".to_owned(),
                |arch| format!("write `compute_capability: \"{}\"`, or use an earlier CUDA", arch.cc),
            ),
        )
    } else if range.is_before(cuda) {
        let what = format!(
            "CUDA {cuda} is older than compute capability {cc}, which role `{}` requests",
            role.plan.name
        );
        (what, format!("use CUDA {} or later", range.min))
    } else {
        return;
    };
    let at = gpu::gpu_at(role).key("compute_capability");
    let found = Diagnostic::warning(codes::CUDA_FOR_CARD, what)
        .at(&at, "")
        .at(&toolkit.at, format!("{} has CUDA {cuda}", toolkit.whose))
        .note(advice);
    sink.push(if let Some(better) = better { found.set(&at, better) } else { found });
}
