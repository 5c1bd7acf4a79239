//! J0350: a role that waits for the end of the job.

use std::collections::BTreeMap;

use jobc_schema::role::NeedState;

use crate::check::view::View;
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Warns of `needs` that is met only when the job has ended: the other role's `min_succeeded` is reached no later.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    let by_name: BTreeMap<&str, _> = view.roles.iter().map(|role| (role.plan.name.as_str(), role)).collect();
    for role in &view.roles {
        for need in role.plan.needs.iter().filter(|need| need.state == NeedState::Succeeded) {
            let Some(other) = by_name.get(need.role.as_str()) else { continue };
            let Some(enough) = other.plan.completion.min_succeeded else { continue };
            if need.min < enough {
                continue;
            }
            let declared = other.plan.declared();
            let place = other.at().keys(["completion", "min_succeeded"]);
            let message = format!(
                "role `{}` never runs: it waits until `{}` has succeeded, which ends the job",
                role.plan.name, need.role
            );
            sink.push(
                Diagnostic::warning(codes::NEEDS_LAST, message)
                    .at(&role.need_at(&need.role), "waits for it")
                    .at(&place, "ends the job")
                    .note(format!(
                        "remove `min_succeeded` of role `{declared}`, or write it on the role that runs last"
                    ))
                    .remove(&place),
            );
        }
    }
}
