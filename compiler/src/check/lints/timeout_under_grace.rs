//! J0316: a timeout that is shorter than the grace period.

use jobc_schema::{Pointer, Seconds};

use crate::check::view::View;
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Warns if a process has more time to terminate than it had to run.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in &view.roles {
        let grace = role.plan.grace_period_seconds;
        let own = role.plan.timeout_seconds.map(|timeout| (timeout, role.at().key("timeout")));
        let job = view.plan.timeout_seconds.map(|timeout| (timeout, Pointer::ROOT.key("timeout")));
        let Some((timeout, at)) = own.or(job).filter(|(timeout, _)| *timeout < grace) else { continue };
        let message = format!(
            "`timeout` of {} is shorter than the grace period of {} that role `{}` has to end",
            Seconds(timeout),
            Seconds(grace),
            role.plan.name
        );
        sink.push(
            Diagnostic::warning(codes::TIMEOUT_UNDER_GRACE, message)
                .at(&at, "")
                .note("write a longer `timeout`, or a shorter `grace_period`"),
        );
    }
}
