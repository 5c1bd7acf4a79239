//! `stall`: when a task makes no progress.

use std::collections::BTreeSet;

use jobc_schema::plan::{Launch, RolePlan, StallPlan};
use jobc_schema::role::Role;
use jobc_schema::stall::{StallAction, StallSign};
use jobc_schema::{Job, Pointer};

use crate::diagnostic::{Diagnostic, Sink, codes};

/// The rules of a role: its own, or those of the job for roles that work by themselves.
pub(super) fn resolve_stall(job: &Job, role: &Role, plan: &RolePlan, sink: &mut Sink) -> Option<StallPlan> {
    let (stall, at) = match (&role.stall, &job.stall) {
        (Some(stall), _) => (stall, plan.at().key("stall")),
        // What only serves others is quiet while they work.
        (None, Some(stall)) if plan.launch != Launch::None => (stall, Pointer::ROOT.key("stall")),
        (None, _) => return None,
    };
    let signs: BTreeSet<StallSign> = stall.signs.iter().copied().collect();
    let mut refuse = |key: &str, message: &str, note: &str| {
        sink.push(Diagnostic::error(codes::STALL_RULES, message).at(&at.key(key), "").note(note.to_owned()));
    };
    if signs.len() == 1 {
        refuse(
            "signs",
            "one sign alone says nothing of a task",
            "a long computation prints nothing, and data that is loaded needs no CPU; write two or more of `logs`, `io`, `cpu`, `nccl`",
        );
    }
    if stall.action == StallAction::Restart && plan.retry.max == 0 {
        let note = "write how often, as in `retry: {max: 3}`, or `action: fail`";
        refuse("action", "`action: restart` needs retries", note);
    }
    let all = || StallSign::ALL.to_vec();
    Some(StallPlan {
        after_seconds: stall.after.0,
        signs: if signs.is_empty() { all() } else { signs.into_iter().collect() },
        action: stall.action,
    })
}
