//! J0342: a role that waits for the end of a role that never ends.

use std::collections::BTreeMap;

use jobc_schema::plan::NeedPlan;
use jobc_schema::role::NeedState;

use crate::check::endless::never_ends;
use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Warns of `needs` that is met only when a server has succeeded.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    let mut endless: BTreeMap<&str, Option<String>> = BTreeMap::new();
    let by_name: BTreeMap<&str, _> = view.roles.iter().map(|role| (role.plan.name.as_str(), role)).collect();
    for role in &view.roles {
        for need in role.plan.needs.iter().filter(|need| need.state == NeedState::Succeeded) {
            let Some(other) = by_name.get(need.role.as_str()) else { continue };
            let found = endless.entry(other.plan.name.as_str()).or_insert_with(|| never_ends(other));
            let Some(program) = found else { continue };
            let message = format!(
                "role `{}` waits until `{}` has succeeded, but `{program}` in it never exits",
                role.plan.name, need.role
            );
            sink.push(
                Diagnostic::warning(codes::NEEDS_ENDLESS, message)
                    .at(&role.need_at(&need.role), "")
                    .at(&other.run_at(), "")
                    .note(format!(
                        "write `needs: {{{}: ready}}` and a `ready` on `{}`, or `started`",
                        need.role, need.role
                    ))
                    .set(&role.at().key("needs"), states(role, &need.role)),
            );
        }
    }
}

/// The `needs` of a role with another one started alone.
fn states(role: &RoleView<'_>, other: &str) -> serde_json::Value {
    let state = |need: &NeedPlan| {
        let state = if need.role == other { NeedState::Started } else { need.state };
        (need.role.clone(), serde_json::json!(state))
    };
    serde_json::Value::Object(role.plan.needs.iter().map(state).collect())
}
