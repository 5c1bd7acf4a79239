//! J0321: a driver too old for a CUDA version.

use jobc_schema::gpu::Vendor;
use jobc_schema::plan::{GpuPlan, ImageSource};

use crate::check::gpu::{self, HostGpuFacts, Toolkit};
use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Location, Severity, Sink, codes};
use crate::stdlib::{Version, cuda, models};
use crate::suggest;

/// Compares the driver of the role or the target with the one that CUDA needs.
///
/// Below the floor of the major version only the `cuda-compat` package helps, and only on data center cards: a warning,
/// or an error without such a card or without an image that could contain it. Between the floor and the toolkit's own
/// driver nearly everything works: a note.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    let declared = HostGpuFacts::of(view);
    for role in &view.roles {
        let Some(requested) = gpu::nvidia(role) else { continue };
        // The program's requirement takes precedence: the image may have a newer CUDA.
        let Some(toolkit) = gpu::program_toolkit(role).or_else(|| gpu::image_toolkit(view, role)) else {
            continue;
        };
        if let Some(driver) = requested.driver.as_deref().and_then(Version::parse) {
            let at = Location::value(&gpu::gpu_at(role).key("driver"));
            let has = Driver {
                who: format!("role `{}` accepts driver {driver}", role.plan.name),
                version: driver,
                at: Some(at),
                advice: "write a driver of",
                may_compat: true,
            };
            compare(role, &toolkit, &has, sink);
        }
        if let Some(driver) = &declared.driver {
            let has = Driver {
                who: format!("{} has driver {driver}", declared.who),
                version: driver.clone(),
                at: declared.driver_at.clone(),
                advice: "use an older CUDA, or nodes with driver",
                may_compat: may_compat(view, role, requested, &declared),
            };
            compare(role, &toolkit, &has, sink);
        }
    }
}

/// A driver to compare.
struct Driver {
    /// Its origin, as text.
    who: String,
    version: Version,
    /// Where it is written; absent where it was found on the host.
    at: Option<Location>,
    /// What to do, before a version.
    advice: &'static str,
    /// Whether the package `cuda-compat` may let it run newer programs.
    may_compat: bool,
}

/// Whether there may be an image with the compatibility package, and a card on which it works.
fn may_compat(
    view: &View<'_>,
    role: &RoleView<'_>,
    requested: &GpuPlan,
    declared: &HostGpuFacts<'_>,
) -> bool {
    let image = view.plan.image_of(role.plan);
    if image.is_some_and(|image| matches!(image.source, ImageSource::Host { .. })) {
        return false;
    }
    let works = |card: Option<models::ModelMatch>| card.is_none_or(|card| card.model.forward_compat);
    match (&requested.models[..], declared.cards_of(Vendor::Nvidia)) {
        ([], Some(cards)) if !cards.is_empty() => cards.iter().any(|card| works(card.model)),
        ([], _) => true,
        (names, _) => names.iter().any(|name| works(models::find(name))),
    }
}

fn compare(role: &RoleView<'_>, toolkit: &Toolkit, has: &Driver, sink: &mut Sink) {
    let Driver { who, version: driver, advice, .. } = has;
    let text = toolkit.version.to_string();
    let oldest = cuda::oldest_driver(&text).and_then(Version::parse);
    let own = cuda::driver_for(&text).and_then(Version::parse);
    let (severity, message, note) = if let Some(oldest) = oldest.filter(|oldest| driver < oldest) {
        let message = format!("{who}, but CUDA {text} needs {oldest} or later");
        let note = match &own {
            Some(own) => format!("{advice} {oldest} or later; CUDA {text} was released with {own}"),
            None => format!("{advice} {oldest} or later"),
        };
        (if has.may_compat { Severity::Warning } else { Severity::Error }, message, note)
    // `550` names the whole branch, the toolkit's own driver with it.
    } else if let Some(own) = own.filter(|own| driver < own && !driver.is_prefix_of(own)) {
        let message = format!(
            "{who}, older than {own}, with which CUDA {text} was released: new features and code that the driver must compile may fail"
        );
        (Severity::Note, message, format!("ignore this if the program is known to run on driver {driver}"))
    } else {
        return;
    };
    let diagnostic = Diagnostic::new(codes::DRIVER_FOR_CUDA, severity, message);
    let mut diagnostic = HostGpuFacts::label(diagnostic, has.at.as_ref(), "")
        .at(&toolkit.at, format!("CUDA {text} of role `{}`", role.plan.name))
        .note(note);
    if severity == Severity::Error {
        let hardware = suggest::list(cuda::table().forward_compat.hardware.iter().map(String::as_str));
        diagnostic = diagnostic.note(format!(
            "the package `{}` lets older drivers run it; it must be in the image and works only on {hardware} cards",
            cuda::compat_package(&toolkit.version)
        ));
    }
    if severity == Severity::Warning {
        diagnostic = diagnostic.note(format!(
            "on data centre cards an image with the package `{}` runs on older drivers",
            cuda::compat_package(&toolkit.version)
        ));
    }
    sink.push(diagnostic);
}
