//! J0302: plain `python` on instances with several GPUs.

use jobc_schema::Pointer;
use jobc_schema::distributed::Framework;

use crate::check::view::View;
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Warns if only the first GPU of an instance would be used.
///
/// Silent if the user set the number of processes: then one process is meant to use all GPUs.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    let Some(distributed) = &view.plan.distributed else { return };
    let written = view.job.distributed.as_ref().is_some_and(|d| d.processes_per_instance.is_some());
    if distributed.framework != Framework::Ddp || written {
        return;
    }
    for role in view.roles.iter().filter(|role| role.gpus() > 1) {
        let plain =
            role.commands.last().is_some_and(|c| c.program().starts_with("python") && !c.is_torchrun());
        if !plain || role.member.is_none_or(|member| member.first_rank.is_none()) {
            continue;
        }
        let message = format!(
            "role `{}` starts one `python` an instance, which with DDP uses one of its {} GPUs",
            role.plan.name,
            role.gpus()
        );
        let distributed = Pointer::ROOT.key("distributed");
        let mut found = Diagnostic::warning(codes::DDP_PROCESSES, message)
            .at(&role.run_at(), "")
            .at(&role.at().keys(["resources", "gpu"]), "")
            .at(&Pointer::ROOT.keys(["distributed", "framework"]), "one process an instance")
            .note(
                "write `torchrun` instead of `python`, and `framework: torchrun`, for a process on each GPU",
            )
            .note("where one process uses them all, write `processes_per_instance: 1` under `distributed`")
            .reword(
                &role.run_at(),
                &format!("{} ", role.commands.last().map_or("", |c| c.program())),
                "torchrun ",
            )
            .also(&distributed.key("framework"), "torchrun");
        found = found.set(&distributed.key("processes_per_instance"), 1);
        sink.push(found);
    }
}
