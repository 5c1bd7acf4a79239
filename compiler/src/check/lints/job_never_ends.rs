//! J0343: a server next to the work, and nothing that ends the job after the work.

use std::collections::BTreeSet;

use jobc_schema::Pointer;
use jobc_schema::role::NeedState;
use serde_json::json;

use crate::check::endless::never_ends;
use crate::check::view::View;
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Warns if the job would occupy its hosts forever.
///
/// Silent for a job of servers alone, which is meant to stay, and wherever a threshold or a timeout ends the job.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    let ends = view.plan.timeout_seconds.is_some()
        || view.roles.iter().any(|role| role.plan.completion.min_succeeded.is_some());
    if ends {
        return;
    }
    // J0342 covers a server whose end other roles wait for.
    let awaited: BTreeSet<&str> = view
        .roles
        .iter()
        .flat_map(|role| &role.plan.needs)
        .filter(|need| need.state == NeedState::Succeeded)
        .map(|need| need.role.as_str())
        .collect();
    let mut servers = Vec::new();
    let mut worker = None;
    for role in &view.roles {
        match never_ends(view, role) {
            Some(_) if awaited.contains(role.plan.name.as_str()) => {}
            Some(program) => servers.push((role, program)),
            // A role that others wait for would end the job before they run.
            None if worker.is_none_or(|known: &String| awaited.contains(known.as_str())) => {
                worker = Some(&role.plan.name);
            }
            None => {}
        }
    }
    let Some(worker) = worker else { return };
    for (role, program) in servers.into_iter().filter(|(role, _)| role.plan.timeout_seconds.is_none()) {
        let message = format!(
            "`{program}` in role `{}` never exits, so the job continues after the other roles have ended",
            role.plan.name
        );
        let found = Diagnostic::warning(codes::JOB_NEVER_ENDS, message).at(&role.run_at(), "");
        let ends = Pointer::ROOT.keys(["roles", worker, "completion"]);
        let all = json!({"min_succeeded": "all"});
        // It would end the job before the server begins (J0350).
        let waits =
            role.plan.needs.iter().any(|need| need.role == *worker && need.state == NeedState::Succeeded);
        sink.push(if waits {
            let found = found.note(format!(
                "it begins when `{worker}` has succeeded: set its `timeout`, or let it run beside `{worker}`, which ends both"
            ));
            match &role.plan.needs[..] {
                [_] => found.set(&role.at().key("needs"), json!({worker: "started"})).also(&ends, all),
                _ => found,
            }
        } else {
            let note =
                format!("write `completion: {{min_succeeded: all}}` on the role that ends the job, such as `{worker}`");
            found.note(note).set(&ends, all)
        });
    }
}
