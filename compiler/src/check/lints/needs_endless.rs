//! J0342: a role that waits for the end of a role that never ends.

use std::collections::BTreeMap;

use jobc_schema::plan::{NeedPlan, PortPlan};
use jobc_schema::role::NeedState;
use serde_json::json;

use crate::check::endless::never_ends;
use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Warns of `needs` that is met only when a server has succeeded.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    let mut servers: BTreeMap<&str, Option<Server>> = BTreeMap::new();
    let by_name: BTreeMap<&str, _> = view.roles.iter().map(|role| (role.plan.name.as_str(), role)).collect();
    for role in &view.roles {
        for need in role.plan.needs.iter().filter(|need| need.state == NeedState::Succeeded) {
            let Some(other) = by_name.get(need.role.as_str()) else { continue };
            let server = servers.entry(other.plan.name.as_str()).or_insert_with(|| Server::of(view, other));
            let Some(server) = server else { continue };
            let why = match server {
                Server::Program(program) => format!("`{program}` in it never exits"),
                Server::Ports => format!("`{}` has `ports`, as servers do, which never exit", need.role),
            };
            let message =
                format!("role `{}` waits until `{}` has succeeded, but {why}", role.plan.name, need.role);
            let place = match server {
                Server::Program(_) => other.run_at(),
                Server::Ports => other.at().keys(["resources", "ports"]),
            };
            let found = Diagnostic::warning(codes::NEEDS_ENDLESS, message)
                .at(&role.need_at(&need.role), "")
                .at(&place, "");
            let needs = |state| states(role, &need.role, state);
            let needs_at = role.at().key("needs");
            let ready_at = other.at().key("ready");
            sink.push(match (&other.plan.ready, other.plan.ports.first()) {
                (Some(_), _) => found
                    .note(format!("write `needs: {{{}: ready}}`", need.role))
                    .set(&needs_at, needs(NeedState::Ready)),
                (None, Some(PortPlan { label, .. })) => found
                    .note(format!(
                        "write `needs: {{{0}: ready}}`, and `ready: {{port: {label}}}` on `{0}`, which is checked by connecting and closing; a server that fails at that is `started`",
                        need.role
                    ))
                    .set(&needs_at, needs(NeedState::Ready))
                    .also(&ready_at, json!({"port": label})),
                (None, None) => found
                    .note(format!(
                        "write `needs: {{{0}: ready}}` and a `ready` on `{0}`, or `started`",
                        need.role
                    ))
                    .set(&needs_at, needs(NeedState::Started)),
            });
        }
    }
}

/// Why a role seems to be a server.
enum Server {
    /// This program in it never exits.
    Program(String),
    /// It is one instance with ports, so others connect to it.
    Ports,
}

impl Server {
    /// The ports of several instances, or of a framework, may be for each other.
    fn of(view: &View<'_>, role: &RoleView<'_>) -> Option<Self> {
        let is_reached = role.member.is_none() && role.plan.instances == 1 && !role.plan.ports.is_empty();
        never_ends(view, role).map(Self::Program).or_else(|| is_reached.then_some(Self::Ports))
    }
}

/// The `needs` of a role with another one in this state.
fn states(role: &RoleView<'_>, other: &str, state: NeedState) -> serde_json::Value {
    let state = |need: &NeedPlan| {
        let state = if need.role == other { state } else { need.state };
        (need.role.clone(), serde_json::json!(state))
    };
    serde_json::Value::Object(role.plan.needs.iter().map(state).collect())
}
