//! J0341: a threshold of failures that can never be reached.

use crate::check::view::View;
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Warns where the job would never fail by a role, though a number says it should.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in &view.roles {
        let instances = role.plan.instances;
        let Some(min) = role.plan.completion.min_failed.filter(|&min| min > instances) else { continue };
        let message = format!(
            "`min_failed: {min}` can never be reached: role `{}` has {instances} instances, and the job goes on when all have failed",
            role.plan.name
        );
        sink.push(
            Diagnostic::warning(codes::THRESHOLD_TOO_HIGH, message)
                .at(&role.at().keys(["completion", "min_failed"]), "")
                .note(format!("write at most `{instances}`, or `none` where failures are not to count")),
        );
    }
}
