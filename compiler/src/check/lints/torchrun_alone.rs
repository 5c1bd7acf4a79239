//! J0301: torchrun on several instances that know nothing of each other.

use crate::check::view::View;
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Words that show that the command itself sets the participants.
const SAID: [&str; 5] = ["nnodes", "rdzv", "standalone", "master_addr", "master-addr"];

/// Warns if each instance would train alone.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in view.roles.iter().filter(|role| role.plan.instances > 1) {
        if !role.commands.iter().any(super::super::command::Command::is_torchrun) {
            continue;
        }
        let text = role.text.to_ascii_lowercase();
        let variable =
            ["PET_NNODES", "PET_RDZV_ENDPOINT", "PET_STANDALONE"].iter().any(|v| role.has_variable(v));
        if variable || SAID.iter().any(|word| text.contains(word)) {
            continue;
        }
        let (name, instances) = (&role.plan.name, role.plan.instances);
        let message = format!(
            "`torchrun` in role `{name}` does not know its {instances} instances: each trains alone, as {instances} separate runs"
        );
        let advice = match &view.plan.distributed {
            Some(_) if role.member.is_some() => {
                "write `framework: torchrun` under `distributed`: other frameworks set none of torchrun's variables".to_owned()
            }
            Some(_) => format!("add `{name}` to `roles` of `distributed`"),
            None => format!("write `distributed: {{framework: torchrun, roles: [{name}]}}` at the top level"),
        };
        sink.push(
            Diagnostic::warning(codes::TORCHRUN_ALONE, message)
                .at(&role.run_at(), "")
                .at(&role.at().key("instances"), "this many instances start it")
                .note(advice)
                .note("for separate runs, write `torchrun --standalone`"),
        );
    }
}
