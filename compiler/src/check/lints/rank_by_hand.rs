//! J0303: variables of the rendezvous set by hand.

use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::resolve::framework_names;

/// What torchrun sets itself in every process it starts.
const TORCHRUN_SETS: [&str; 6] =
    ["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "ROLE_RANK"];

/// Warns if one value for all instances replaces values that differ between them.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in &view.roles {
        let torchrun = role.commands.iter().any(super::super::command::Command::is_torchrun);
        // Variables that the user sets are no longer among the provided ones, so the names are computed again.
        let set = view.plan.distributed.as_ref().zip(role.member);
        let set = set.map(|(distributed, member)| framework_names(distributed, member)).unwrap_or_default();
        for name in role.plan.env.keys() {
            let message = if torchrun && TORCHRUN_SETS.contains(&name.as_str()) {
                format!("`{name}` is set by hand, but `torchrun` sets it in every process it starts")
            } else if set.contains(name) {
                format!("`{name}` is set by hand and overrides what `distributed` sets in each instance")
            } else {
                continue;
            };
            sink.push(
                Diagnostic::warning(codes::RANK_BY_HAND, message)
                    .at_key(&place(role, name), "")
                    .note(format!("leave `{name}` out")),
            );
        }
    }
}

/// The role's own entry, else the job's.
fn place(role: &RoleView<'_>, name: &str) -> jobc_schema::Pointer {
    let own = role.spec.is_some_and(|spec| spec.env.contains_key(name));
    let at = if own { role.at() } else { jobc_schema::Pointer::ROOT };
    at.keys(["env", name])
}
