//! J0301: a launcher on several instances without a rendezvous.

use jobc_schema::Pointer;
use jobc_schema::distributed::Framework;
use serde_json::json;

use crate::check::command::{Command, Launcher};
use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::resolve::framework_name;

/// Warns if each instance would train alone.
///
/// An address alone does not say how many instances there are: without `--nnodes` torchrun counts one.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in &view.roles {
        let Some(launcher) = launcher(view, role) else { continue };
        let (name, instances) = (&role.plan.name, role.plan.instances);
        let message = format!(
            "`{}` in role `{name}` does not know its {instances} instances: each trains alone, as {instances} separate runs",
            launcher.name()
        );
        let diagnostic = Diagnostic::warning(codes::LAUNCHER_ALONE, message)
            .at(&role.run_at(), "")
            .at(&role.at().key("instances"), "this many instances start it")
            .note(advice(view, role, launcher));
        let separate = match launcher {
            Launcher::Torchrun => "for separate runs, write `torchrun --standalone`",
            _ => "for separate runs, write `x-jobc-allow: [J0301]` at the top level",
        };
        sink.push(mended(view, role, launcher, diagnostic.note(separate)));
    }
}

/// The launcher of a role that has this finding.
pub(super) fn launcher(view: &View<'_>, role: &RoleView<'_>) -> Option<Launcher> {
    role.commands.iter().filter(|_| role.plan.instances > 1).find_map(|command| {
        let launcher = command.launcher()?;
        is_alone(view, role, command, launcher).then_some(launcher)
    })
}

fn is_alone(view: &View<'_>, role: &RoleView<'_>, command: &Command, launcher: Launcher) -> bool {
    // `framework: deepspeed` and the like are checked by J0309.
    let own = role.member.is_some()
        && view.plan.distributed.as_ref().is_some_and(|d| framework(launcher).contains(&d.framework));
    match launcher {
        Launcher::Torchrun => {
            let is_set = ["PET_NNODES", "PET_STANDALONE"].iter().any(|name| role.has_variable(name));
            !is_set && !role.mentions(&["nnodes", "PET_NNODES", "standalone"])
        }
        Launcher::Accelerate => {
            let is_set = ["num_machines", "num-machines", "config_file", "config-file", "PET_NNODES"];
            !role.has_variable("PET_NNODES") && !role.mentions(&is_set)
        }
        Launcher::Composer => {
            let is_set = ["world_size", "world-size"];
            !own && !role.has_variable("WORLD_SIZE") && !role.mentions(&is_set)
        }
        Launcher::Colossalai => {
            let is_set = ["--host", "-host", "-H"];
            !is_set.iter().any(|flag| command.has(flag)) && !role.mentions(&["hostfile"])
        }
        Launcher::Deepspeed => {
            !own && !command.has("--no_ssh") && !role.knows_index() && !role.mentions(&["hostfile"])
        }
        Launcher::Mpirun | Launcher::Horovodrun => {
            let hosts = ["-H", "-host", "--host", "-hosts", "--hosts", "-f", "-machinefile", "--machinefile"];
            let is_set =
                hosts.iter().any(|flag| command.has(flag)) || role.mentions(&["hostfile", "HOST_FILE"]);
            !own && !is_set && !role.knows_index()
        }
    }
}

/// The frameworks that a launcher is for; the first is what to write.
fn framework(launcher: Launcher) -> &'static [Framework] {
    match launcher {
        Launcher::Torchrun | Launcher::Colossalai => &[Framework::Torchrun],
        Launcher::Accelerate => &[Framework::Accelerate],
        Launcher::Composer => &[Framework::Composer],
        Launcher::Deepspeed => &[Framework::Deepspeed],
        Launcher::Mpirun => &[Framework::Mpi, Framework::Horovod, Framework::Deepspeed],
        Launcher::Horovodrun => &[Framework::Horovod, Framework::Mpi],
    }
}

/// Offers what [`advice`] says, and separate runs.
fn mended(view: &View<'_>, role: &RoleView<'_>, launcher: Launcher, found: Diagnostic) -> Diagnostic {
    let (name, word) = (&role.plan.name, framework_name(framework(launcher)[0]));
    let at = Pointer::ROOT.key("distributed");
    let (at, value) = match &view.plan.distributed {
        Some(_) if role.member.is_some() => (at.key("framework"), json!(word)),
        Some(_) => return found,
        None => (at, json!({"framework": word, "roles": [name]})),
    };
    let run = role.run_at();
    match launcher {
        // It starts torchrun on each host by ssh.
        Launcher::Colossalai => found.reword(&run, "colossalai run", "torchrun").also(&at, value),
        Launcher::Torchrun => {
            let found = found.set(&at, value);
            let starts = ["torchrun", "torch.distributed.run", "torch.distributed.launch"];
            let start = starts.into_iter().find(|start| role.text.contains(start)).unwrap_or("torchrun");
            found.reword(&run, start, &format!("{start} --standalone"))
        }
        _ => found.set(&at, value),
    }
}

fn advice(view: &View<'_>, role: &RoleView<'_>, launcher: Launcher) -> String {
    let name = &role.plan.name;
    let word = framework_name(framework(launcher)[0]);
    let set = match &view.plan.distributed {
        Some(_) if role.member.is_some() && launcher == Launcher::Torchrun => {
            return "write `framework: torchrun` under `distributed`: other frameworks set none of torchrun's variables".to_owned();
        }
        Some(_) if role.member.is_some() => format!("write `framework: {word}` under `distributed`"),
        Some(_) => format!("add `{name}` to `roles` of `distributed`"),
        None => format!("write `distributed: {{framework: {word}, roles: [{name}]}}` at the top level"),
    };
    match launcher {
        Launcher::Colossalai => {
            format!("{set}, and `torchrun` instead of `colossalai run`, which starts it by ssh")
        }
        _ => set,
    }
}
