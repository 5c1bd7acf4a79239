//! J0305: thresholds on instances that depend on each other.

use crate::check::view::View;
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Warns if some ranks may fail or end while the others continue.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    // The ranks of an elastic rendezvous come and go.
    if view.plan.distributed.as_ref().is_some_and(|distributed| distributed.elastic.is_some()) {
        return;
    }
    for role in &view.roles {
        if role.member.is_none_or(|m| m.first_rank.is_none()) || role.plan.instances < 2 {
            continue;
        }
        let completion = role.plan.completion;
        let at = role.at().key("completion");
        let name = &role.plan.name;
        if completion.min_succeeded.is_some_and(|n| n < role.plan.instances) {
            let message = format!(
                "`min_succeeded` of role `{name}` ends the job when some ranks have ended: the others are stopped"
            );
            sink.push(
                Diagnostic::warning(codes::THRESHOLD_IN_GANG, message)
                    .at(&at.key("min_succeeded"), "")
                    .note("write `min_succeeded: all`, or leave it out")
                    .set(&at.key("min_succeeded"), "all"),
            );
        }
        if completion.min_failed != Some(1) {
            let message = format!(
                "`min_failed` of role `{name}` lets the job continue after a rank fails: the other ranks wait for it forever"
            );
            sink.push(
                Diagnostic::warning(codes::THRESHOLD_IN_GANG, message)
                    .at(&at.key("min_failed"), "")
                    .note("leave `min_failed` out: the first failure then ends the job, or starts it again with `retry`")
                    .remove(&at.key("min_failed")),
            );
        }
    }
}
