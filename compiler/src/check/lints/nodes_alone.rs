//! J0301: a program that meets its peers on several nodes, and is told of none.

use jobc_schema::{BackendName, Pointer};
use serde_json::json;

use crate::check::command::Command;
use crate::check::view::View;
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Options for the number of nodes, of Lightning's command line and of programs that pass them on to its `Trainer`.
const FLAGS: [&str; 2] = ["--num-nodes", "--trainer.num-nodes"];

/// The same as Hydra and OmegaConf write them.
const ASSIGNED: [&str; 2] = ["trainer.num_nodes=", "num_nodes="];

/// Warns where each instance would wait for the others at an address that nothing sets.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    // Lightning takes the addresses from Slurm's variables.
    if view.has_backend(BackendName::Slurm) {
        return;
    }
    for role in view.roles.iter().filter(|role| role.plan.instances > 1 && role.member.is_none()) {
        let knows = role.mentions(&["MASTER_ADDR", "num_machines"]);
        let option =
            role.commands.iter().find_map(|command| option(command, role.plan.instances)).filter(|_| !knows);
        let Some(option) = option else { continue };
        let name = &role.plan.name;
        let message = format!(
            "`{option}` in role `{name}` waits for other nodes, and nothing tells the {} instances of each other",
            role.plan.instances
        );
        let found = Diagnostic::warning(codes::LAUNCHER_ALONE, message)
            .at(&role.run_at(), "")
            .at(&role.at().key("instances"), "this many instances start it");
        let note = format!(
            "PyTorch Lightning needs `distributed: {{framework: lightning, roles: [{name}]}}` at the top level"
        );
        let found = found.note(note);
        sink.push(match view.plan.distributed {
            Some(_) => found,
            None => found
                .set(&Pointer::ROOT.key("distributed"), json!({"framework": "lightning", "roles": [name]})),
        });
    }
}

/// The option of a Python program that asks for as many nodes as there are instances, as it is written.
fn option(command: &Command, instances: u32) -> Option<String> {
    if !command.is_python() || command.launcher().is_some() {
        return None;
    }
    let all = |value: &str| value.parse() == Ok(instances);
    let assigned = command
        .arguments()
        .iter()
        .find(|word| ASSIGNED.iter().any(|name| word.strip_prefix(name).is_some_and(all)));
    let flagged = || {
        let (flag, value) = command.one_of(&FLAGS)?;
        all(value).then(|| flag.to_owned())
    };
    assigned.cloned().or_else(flagged)
}
