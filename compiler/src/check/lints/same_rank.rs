//! J0308: a rank written as a number, which is the same in every instance.

use crate::check::command::{Command, Launcher};
use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Warns of `--node_rank=0` in a role of several instances: they all wait for the others, or fail.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in view.roles.iter().filter(|role| role.plan.instances > 1) {
        let Some((launcher, flag, number)) = role.commands.iter().find_map(|command| rank(role, command))
        else {
            continue;
        };
        // Only torchrun reads its flags from `PET_*` as well.
        let is_set = launcher == Some(Launcher::Torchrun) && role.has_variable("PET_NODE_RANK");
        let own = if role.has_variable("JOBC_RANK") { "$JOBC_RANK" } else { "$JOBC_INDEX" };
        let message = format!(
            "`{flag}` is {number} in all {} instances of role `{}`",
            role.plan.instances, role.plan.name
        );
        let advice = if is_set {
            format!("leave `{flag}` out: `distributed` sets it in each instance")
        } else {
            format!("write `{flag}={own}`, the number of the instance")
        };
        let mut found = Diagnostic::warning(codes::SAME_RANK, message)
            .at(&role.run_at(), "")
            .at(&role.at().key("instances"), "")
            .note(advice);
        if !is_set {
            for between in ["=", " "] {
                let (old, new) = (format!("{flag}{between}{number}"), format!("{flag}{between}{own}"));
                found = found.reword(&role.run_at(), &old, &new);
            }
        }
        sink.push(found);
    }
}

/// The launcher, the flag with a rank, and its number.
fn rank<'c>(role: &RoleView<'_>, command: &'c Command) -> Option<(Option<Launcher>, &'c str, &'c str)> {
    let flags: &[&str] = match command.launcher() {
        Some(Launcher::Torchrun) if role.mentions(&["standalone"]) => return None,
        Some(Launcher::Torchrun | Launcher::Deepspeed | Launcher::Composer) => &["--node_rank"],
        Some(Launcher::Accelerate) => &["--machine_rank"],
        // PyTorch's own examples: `python main.py --world-size 2 --rank 0`.
        None if command.is_python()
            && command.one_of(&["--world-size", "--num-nodes", "--nnodes"]).is_some() =>
        {
            &["--rank", "--node_rank"]
        }
        Some(Launcher::Mpirun | Launcher::Horovodrun | Launcher::Colossalai) | None => return None,
    };
    let (flag, number) = command.one_of(flags)?;
    number.parse::<u32>().is_ok().then_some((command.launcher(), flag, number))
}
