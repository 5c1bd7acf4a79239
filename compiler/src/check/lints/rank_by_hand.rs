//! J0303: variables of the rendezvous set by hand.

use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::resolve::framework_names;

/// What torchrun sets itself in every process it starts.
const TORCHRUN_VARIABLES: [&str; 6] =
    ["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "ROLE_RANK"];

/// Warns if one value for all instances replaces values that differ between them.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in &view.roles {
        let torchrun = role.commands.iter().any(crate::check::command::Command::is_torchrun);
        // Variables that the user sets are no longer among the provided ones, so the names are computed again.
        let set = view.plan.distributed.as_ref().zip(role.member);
        let set = set.map(|(distributed, member)| framework_names(distributed, member)).unwrap_or_default();
        for name in role.plan.env.keys() {
            let (message, note) = if torchrun && TORCHRUN_VARIABLES.contains(&name.as_str()) {
                // The command may pass it on, as in `--node_rank=$RANK`; then torchrun's own value comes later.
                if role.uses(name) {
                    let Some(found) = constant_rank(role, name) else { continue };
                    found
                } else {
                    let message =
                        format!("`{name}` is set by hand, but `torchrun` sets it in every process it starts");
                    (message, format!("leave `{name}` out"))
                }
            } else if set.contains(name) {
                let message =
                    format!("`{name}` is set by hand and overrides what `distributed` sets in each instance");
                (message, format!("leave `{name}` out"))
            } else {
                continue;
            };
            let at = role.env_at(name);
            let index = note.contains("instance.index");
            let found = Diagnostic::warning(codes::RANK_BY_HAND, message).at_key(&at, "").note(note);
            sink.push(if index { found.set(&at, "${{ instance.index }}") } else { found.remove(&at) });
        }
    }
}

/// The problem of a rank that the command passes to torchrun; `None` if it differs between instances.
fn constant_rank(role: &RoleView<'_>, name: &str) -> Option<(String, String)> {
    let value = role.constant(name)?;
    if role.plan.instances < 2 || !name.ends_with("RANK") || value.contains('$') {
        return None;
    }
    let message = format!(
        "`{name}` is {value} in all {} instances of role `{}`, and the command passes it on",
        role.plan.instances, role.plan.name
    );
    Some((message, format!("write `{name}: ${{{{ instance.index }}}}`, the number of the instance")))
}
