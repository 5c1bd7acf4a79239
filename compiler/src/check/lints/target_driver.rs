//! J0322: a target whose driver is older than the role asks for.

use crate::check::gpu;
use crate::check::view::View;
use crate::diagnostic::{Diagnostic, Place, Sink, codes};
use crate::stdlib::Version;

/// Refuses a role that the target's nodes can never run.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    let Some(text) = gpu::target(view).and_then(|gpu| gpu.driver.as_deref()) else { return };
    let Some(has) = Version::parse(text) else { return };
    for role in &view.roles {
        let Some(asked) = gpu::nvidia(role).and_then(|gpu| gpu.driver.as_deref()).and_then(Version::parse)
        else {
            continue;
        };
        if asked <= has {
            continue;
        }
        let target = &view.plan.target.name;
        let message = format!(
            "role `{}` asks for driver {asked} or later, and target `{target}` has {has}",
            role.plan.name
        );
        sink.push(
            Diagnostic::error(codes::TARGET_DRIVER, message)
                .at(&gpu::gpu_at(role).key("driver"), "")
                .at_place(
                    Place::target(&view.target_at(&["kubernetes", "gpu", "driver"])),
                    "the target's driver",
                )
                .note("ask for an older driver, or build for another target"),
        );
    }
}
