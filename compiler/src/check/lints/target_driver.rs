//! J0322: a target whose driver is older than the role requests.

use crate::check::gpu::{self, HostGpuFacts};
use crate::check::view::View;
use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::stdlib::Version;

/// Refuses a role that the target's nodes can never run.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    let declared = HostGpuFacts::of(view);
    let Some(has) = &declared.driver else { return };
    for role in &view.roles {
        let Some(requested) =
            gpu::nvidia(role).and_then(|gpu| gpu.driver.as_deref()).and_then(Version::parse)
        else {
            continue;
        };
        if requested <= *has {
            continue;
        }
        let who = &declared.who;
        let message =
            format!("role `{}` requests driver {requested} or later, and {who} has {has}", role.plan.name);
        let diagnostic = Diagnostic::error(codes::TARGET_DRIVER, message)
            .at(&gpu::gpu_at(role).key("driver"), "")
            .note("request an older driver, or build for another target");
        sink.push(HostGpuFacts::label(diagnostic, declared.driver_at.as_ref(), "the target's driver"));
    }
}
