//! J0306: a retry of one rank.

use jobc_schema::Pointer;
use jobc_schema::role::RetryScope;

use crate::check::view::View;
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Warns if one rank would be restarted while the others have lost it.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    // The ranks of an elastic rendezvous come and go.
    if view.plan.distributed.as_ref().is_some_and(|distributed| distributed.elastic.is_some()) {
        return;
    }
    for role in &view.roles {
        let ranked = role.member.is_some_and(|m| m.first_rank.is_some()) && role.plan.instances > 1;
        if !ranked || role.plan.retry.max == 0 || role.plan.retry.scope != RetryScope::Task {
            continue;
        }
        let own = role.spec.is_some_and(|spec| spec.retry.is_some());
        let at = if own { role.at() } else { Pointer::ROOT }.key("retry");
        let message = format!(
            "retrying one instance of `{}` does not help: the other ranks have lost it and do not accept it again",
            role.plan.name
        );
        let note =
            "write `scope: job`, or leave `scope` out, which means the same for roles of `distributed`";
        let found = Diagnostic::warning(codes::RETRY_ONE_RANK, message).at(&at.key("scope"), "").note(note);
        sink.push(found.set(&at.key("scope"), "job"));
    }
}
