//! J0304: numbers of torchrun's command line that disagree with the job.

use crate::check::command::Command;
use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Warns where `--nproc-per-node` asks for more GPUs than there are, or `--nnodes` for other instances.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in &view.roles {
        for command in role.commands.iter().filter(|c| c.is_torchrun()) {
            processes(role, command, sink);
            instances(role, command, sink);
        }
    }
}

fn processes(role: &RoleView<'_>, command: &Command, sink: &mut Sink) {
    let Some(gpu) = role.plan.resources.gpu.as_ref().filter(|gpu| gpu.count > 0) else { return };
    let Some(wanted) = command.flag("--nproc-per-node").and_then(|n| n.parse::<u32>().ok()) else { return };
    if wanted > gpu.count {
        let message = format!(
            "`torchrun` starts {wanted} processes in an instance of `{}` that has {} GPUs: two would share one, which NCCL refuses",
            role.plan.name, gpu.count
        );
        sink.push(
            Diagnostic::warning(codes::LAUNCHER_DISAGREES, message)
                .at(&role.run_at(), "")
                .at(&role.at().keys(["resources", "gpu"]), "")
                .note(advice(role, "--nproc-per-node", "GPUs")),
        );
    }
}

fn instances(role: &RoleView<'_>, command: &Command, sink: &mut Sink) {
    let Some(written) = command.flag("--nnodes") else { return };
    // An elastic job writes the least and the most: `2:4`.
    let (least, most) = written.split_once(':').unwrap_or((written, written));
    let (Ok(least), Ok(most)) = (least.parse::<u32>(), most.parse::<u32>()) else { return };
    let instances = role.plan.instances;
    if (least..=most).contains(&instances) {
        return;
    }
    let message =
        format!("`torchrun` waits for {written} nodes, but role `{}` has {instances}", role.plan.name);
    sink.push(
        Diagnostic::warning(codes::LAUNCHER_DISAGREES, message)
            .at(&role.run_at(), "")
            .at(&role.at().key("instances"), "")
            .note(advice(role, "--nnodes", "instances")),
    );
}

fn advice(role: &RoleView<'_>, flag: &str, number: &str) -> String {
    let set = format!("`distributed` sets it to the number of {number}");
    if role.member.is_some() {
        format!("leave `{flag}` out: {set}")
    } else {
        let name = &role.plan.name;
        format!("leave `{flag}` out and write `distributed: {{framework: torchrun, roles: [{name}]}}`: {set}")
    }
}
