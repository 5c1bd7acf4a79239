//! J0343: a server beside the work, and nothing that ends the job when the work is done.

use crate::check::endless::never_ends;
use crate::check::view::View;
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Warns where the job would hold its machines for ever.
///
/// Silent for a job of servers alone, which is meant to stay, and wherever a threshold or a timeout ends the job.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    let ends = view.plan.timeout_seconds.is_some()
        || view.roles.iter().any(|role| role.plan.completion.min_succeeded.is_some());
    if ends {
        return;
    }
    let mut servers = Vec::new();
    let mut worker = None;
    for role in &view.roles {
        match never_ends(role) {
            Some(program) => servers.push((role, program)),
            None => worker = worker.or(Some(&role.plan.name)),
        }
    }
    let Some(worker) = worker else { return };
    for (role, program) in servers.into_iter().filter(|(role, _)| role.plan.timeout_seconds.is_none()) {
        let message = format!(
            "`{program}` in role `{}` never ends by itself, so the job goes on after the other roles have ended",
            role.plan.name
        );
        sink.push(
            Diagnostic::warning(codes::JOB_NEVER_ENDS, message)
                .at(&role.run_at(), "")
                .note(format!("write `completion: {{min_succeeded: all}}` on the role whose end is the job's, such as `{worker}`")),
        );
    }
}
