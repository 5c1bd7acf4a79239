//! J0357: a variable that the job and the target set to different values.

use jobc_schema::plan::EnvPlan;

use crate::check::view::View;
use crate::diagnostic::{Diagnostic, Location, Sink, codes};

/// Notes that tasks get the value of the job.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    let target = &view.plan.target;
    for role in &view.roles {
        for (name, value) in &target.settings.env {
            let Some(own) = role.plan.env.get(name) else { continue };
            if matches!(own, EnvPlan::Text(text) if text.as_literal() == Some(&value.text)) {
                continue;
            }
            let message = format!("`{name}` of the job replaces that of target `{}`", target.name);
            sink.push(
                Diagnostic::info(codes::TARGET_VARIABLE, message)
                    .at_key(&role.env_at(name), "")
                    .at_place(
                        Location::target(&view.target_at(&["env", name])),
                        "the target's value is not used",
                    )
                    .note("leave the variable out of the job if its value belongs to the cluster"),
            );
        }
    }
}
