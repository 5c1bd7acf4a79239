//! J0302: plain `python` where several processes an instance are counted.

use jobc_schema::distributed::Framework;

use crate::check::view::View;
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Warns where the ranks of an instance but the first would never come.
///
/// Silent where the user wrote the number: then the program starts its processes itself.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    let Some(distributed) = &view.plan.distributed else { return };
    let written = view.job.distributed.as_ref().is_some_and(|d| d.processes_per_instance.is_some());
    if distributed.framework != Framework::Ddp || written {
        return;
    }
    for role in &view.roles {
        let Some(member) = role.member.filter(|m| m.first_rank.is_some() && m.processes > 1) else {
            continue;
        };
        let plain =
            role.commands.last().is_some_and(|c| c.program().starts_with("python") && !c.is_torchrun());
        if !plain {
            continue;
        }
        let message = format!(
            "role `{}` starts one `python` an instance, but {} processes an instance are counted: the others are waited for in vain",
            role.plan.name, member.processes
        );
        sink.push(
            Diagnostic::warning(codes::DDP_PROCESSES, message)
                .at(&role.run_at(), "")
                .at_key(&jobc_schema::Pointer::ROOT.key("distributed"), "the number is that of the GPUs")
                .note("write `torchrun` in place of `python`, with `framework: torchrun`")
                .note("where one process serves an instance, or the program starts the others itself, write `processes_per_instance` under `distributed`"),
        );
    }
}
