//! J0321: a driver too old for a CUDA version.

use crate::check::gpu::{self, Toolkit};
use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Place, Severity, Sink, codes};
use crate::stdlib::{Version, cuda};

/// Compares the driver that the role or the target states with what CUDA needs.
///
/// Below the floor of the major version only the `cuda-compat` package helps, and on data centre cards alone: a
/// warning. Between the floor and the toolkit's own driver nearly everything works: a note.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in &view.roles {
        let Some(asked) = gpu::nvidia(role) else { continue };
        // What the program needs counts before what the image has: the image may have more.
        let Some(toolkit) = gpu::program_toolkit(role).or_else(|| gpu::image_toolkit(view, role)) else {
            continue;
        };
        if let Some(driver) = asked.driver.as_deref().and_then(Version::parse) {
            let at = Place::value(&gpu::gpu_at(role).key("driver"));
            let who = format!("role `{}` accepts driver {driver}", role.plan.name);
            compare(role, &toolkit, &driver, at, &who, "write a driver of", sink);
        }
        let target = gpu::target(view).and_then(|gpu| gpu.driver.as_deref()).and_then(Version::parse);
        if let Some(driver) = target {
            let at = Place::target(&view.target_at(&["kubernetes", "gpu", "driver"]));
            let who = format!("target `{}` has driver {driver}", view.plan.target.name);
            compare(role, &toolkit, &driver, at, &who, "take an older CUDA, or nodes with driver", sink);
        }
    }
}

fn compare(
    role: &RoleView<'_>,
    toolkit: &Toolkit,
    driver: &Version,
    at: Place,
    who: &str,
    advice: &str,
    sink: &mut Sink,
) {
    let text = toolkit.version.to_string();
    let oldest = cuda::oldest_driver(&text).and_then(Version::parse);
    let own = cuda::driver_for(&text).and_then(Version::parse);
    let (severity, message, note) = if let Some(oldest) = oldest.filter(|oldest| driver < oldest) {
        let message = format!("{who}, but CUDA {text} needs {oldest} or later");
        let note = match &own {
            Some(own) => format!("{advice} {oldest} or later; CUDA {text} was released with {own}"),
            None => format!("{advice} {oldest} or later"),
        };
        (Severity::Warning, message, note)
    // `550` names the whole branch, the toolkit's own driver with it.
    } else if let Some(own) = own.filter(|own| driver < own && !driver.begins(own)) {
        let message = format!(
            "{who}, older than {own}, with which CUDA {text} was released: what is new in it and code that the driver must compile may fail"
        );
        (
            Severity::Note,
            message,
            format!("nothing to do where the program has been seen to run on driver {driver}"),
        )
    } else {
        return;
    };
    let mut diagnostic = Diagnostic::new(codes::DRIVER_FOR_CUDA, severity, message)
        .at_place(at, "")
        .at(&toolkit.at, format!("CUDA {text} of role `{}`", role.plan.name))
        .note(note);
    if severity == Severity::Warning {
        diagnostic = diagnostic.note(format!(
            "on data centre cards an image with the package `{}` runs on older drivers",
            cuda::compat_package(&toolkit.version)
        ));
    }
    sink.push(diagnostic);
}
