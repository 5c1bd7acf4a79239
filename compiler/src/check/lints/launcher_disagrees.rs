//! J0304: numbers of a launcher's command line that disagree with the job.

use jobc_schema::Pointer;

use crate::check::command::{Command, Launcher};
use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Flags with the number of processes of an instance, by launcher.
const PROCESSES: [(Launcher, &[&str]); 3] = [
    (Launcher::Torchrun, &["--nproc-per-node"]),
    (Launcher::Deepspeed, &["--num_gpus", "--num_accelerators"]),
    (Launcher::Composer, &["--nproc"]),
];

/// Flags with the number of instances.
const INSTANCES: [(Launcher, &[&str]); 3] = [
    (Launcher::Torchrun, &["--nnodes"]),
    (Launcher::Deepspeed, &["--num_nodes"]),
    (Launcher::Accelerate, &["--num_machines"]),
];

/// Flags with the number of all processes.
const WORLD: [(Launcher, &[&str]); 4] = [
    (Launcher::Mpirun, &["-np", "-n", "--np", "-c"]),
    (Launcher::Horovodrun, &["-np", "--num-proc"]),
    (Launcher::Accelerate, &["--num_processes"]),
    (Launcher::Composer, &["--world_size"]),
];

/// Warns where a launcher starts more or fewer processes than there are GPUs, or waits for other instances.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in &view.roles {
        for command in &role.commands {
            let Some(launcher) = command.launcher() else { continue };
            processes(view, role, command, launcher, sink);
            instances(view, role, command, launcher, sink);
            world(view, role, command, launcher, sink);
            standalone(role, command, launcher, sink);
        }
    }
}

fn flags<'f>(table: &[(Launcher, &'f [&'f str])], launcher: Launcher) -> &'f [&'f str] {
    table.iter().find(|(known, _)| *known == launcher).map_or(&[], |(_, flags)| flags)
}

/// The number of processes on each instance that the user wrote, where it is not that of the GPUs.
fn written_processes(view: &View<'_>) -> Option<u32> {
    view.job.distributed.as_ref()?.processes_per_instance
}

fn processes(view: &View<'_>, role: &RoleView<'_>, command: &Command, launcher: Launcher, sink: &mut Sink) {
    let Some(gpu) = role.plan.gpus() else { return };
    let flags = flags(&PROCESSES, launcher);
    let Some((flag, wanted)) = command.one_of(flags).zip(role.number(command, flags)) else { return };
    let (program, name, gpus) = (launcher.name(), &role.plan.name, gpu.count);
    let message = if wanted > gpus {
        format!(
            "`{program}` starts {wanted} processes in an instance of `{name}` that has {gpus} GPUs: two would share one, which NCCL refuses"
        )
    } else if wanted < gpus
        && written_processes(view) != Some(wanted)
        && !role.mentions(&["CUDA_VISIBLE_DEVICES"])
    {
        let (idle, are) = (gpus - wanted, if gpus - wanted == 1 { "is" } else { "are" });
        let processes = if wanted == 1 { "process" } else { "processes" };
        format!(
            "`{program}` starts {wanted} {processes} in an instance of `{name}` that has {gpus} GPUs: {idle} {are} idle"
        )
    } else {
        return;
    };
    let mut found = Diagnostic::warning(codes::LAUNCHER_DISAGREES, message)
        .at(&role.run_at(), "")
        .at(&role.at().keys(["resources", "gpu"]), "")
        .note(advice(role, launcher, flag.0, "GPUs"));
    if wanted < gpus && role.member.is_some() {
        let note = format!(
            "where a process uses several GPUs, write `processes_per_instance: {wanted}` under `distributed`"
        );
        let at = Pointer::ROOT.keys(["distributed", "processes_per_instance"]);
        found = found.note(note).set(&at, wanted);
    }
    sink.push(renumbered(role, found, flag, &gpus.to_string()));
}

fn instances(view: &View<'_>, role: &RoleView<'_>, command: &Command, launcher: Launcher, sink: &mut Sink) {
    let Some((flag, word)) = command.one_of(flags(&INSTANCES, launcher)) else { return };
    let Some(written) = role.value(word) else { return };
    // An elastic job writes the least and the most: `2:4`.
    let (least, max) = written.split_once(':').unwrap_or((written, written));
    let (Ok(least), Ok(max)) = (least.parse::<u32>(), max.parse::<u32>()) else { return };
    // Without `distributed` instances of several roles may meet, and a single one may be meant to be alone.
    let all: u32 = view.plan.roles.iter().map(|role| role.instances).fold(0, u32::saturating_add);
    let has = if role.member.is_some() { role.peers(view) } else { role.plan.instances };
    if (least..=max).contains(&has) || (role.member.is_none() && (least..=max).contains(&all)) {
        return;
    }
    let nodes = if written == "1" { "node" } else { "nodes" };
    let message =
        format!("`{}` waits for {written} {nodes}, but role `{}` has {has}", launcher.name(), role.plan.name);
    let found = Diagnostic::warning(codes::LAUNCHER_DISAGREES, message)
        .at(&role.run_at(), "")
        .at(&role.at().key("instances"), "")
        .note(advice(role, launcher, flag, "instances"));
    sink.push(renumbered(role, found, (flag, word), &has.to_string()));
}

/// Offers another number for a flag of the command.
fn renumbered(
    role: &RoleView<'_>,
    found: Diagnostic,
    (flag, word): (&str, &str),
    number: &str,
) -> Diagnostic {
    let offer = |found: Diagnostic, between: &str| {
        let (old, new) = (format!("{flag}{between}{word}"), format!("{flag}{between}{number}"));
        found.reword(&role.run_at(), &old, &new)
    };
    offer(offer(found, "="), " ")
}

fn world(view: &View<'_>, role: &RoleView<'_>, command: &Command, launcher: Launcher, sink: &mut Sink) {
    let flags = flags(&WORLD, launcher);
    let Some(((flag, written), wanted)) = command.one_of(flags).zip(role.number(command, flags)) else {
        return;
    };
    let world = match &view.plan.distributed {
        Some(distributed) if role.member.is_some() => distributed.world_size,
        _ if launcher == Launcher::Accelerate && role.gpus() > 0 => {
            role.gpus().saturating_mul(role.plan.instances)
        }
        _ => return,
    };
    let shares =
        ["--oversubscribe", "-oversubscribe", "--map-by", "-map-by", "-N", "--npernode", "-npernode"];
    if wanted == world || (wanted > world && shares.iter().any(|flag| command.has(flag))) {
        return;
    }
    let (program, name) = (launcher.name(), &role.plan.name);
    let outcome = if wanted < world { "the rest is idle" } else { "there is no room for the others" };
    let message = format!(
        "`{program}` starts {wanted} processes, but `{name}` and the roles with it have room for {world}: {outcome}"
    );
    let mut found = Diagnostic::warning(codes::LAUNCHER_DISAGREES, message).at(&role.run_at(), "");
    if role.member.is_some() {
        found = found
            .at(&Pointer::ROOT.key("distributed"), format!("a world size of {world}"))
            .note(format!("write `{flag} ${{{{ distributed.world_size }}}}`"))
            .note("one process for each GPU, else for each instance; `processes_per_instance` under `distributed` changes that");
    } else {
        found = found.note(format!("write `{flag} {world}`: one process for each GPU"));
    }
    let number =
        if role.member.is_some() { "${{ distributed.world_size }}".to_owned() } else { world.to_string() };
    sink.push(renumbered(role, found, (flag, written), &number));
}

/// `--standalone` where `distributed` joins the instances.
fn standalone(role: &RoleView<'_>, command: &Command, launcher: Launcher, sink: &mut Sink) {
    let joined = role.has_variable("PET_NNODES") && role.plan.instances > 1;
    if launcher != Launcher::Torchrun || !command.has("--standalone") || !joined {
        return;
    }
    let message = format!(
        "`torchrun --standalone` makes {} separate runs of role `{}`, which `distributed` joins",
        role.plan.instances, role.plan.name
    );
    sink.push(
        Diagnostic::warning(codes::LAUNCHER_DISAGREES, message)
            .at(&role.run_at(), "")
            .at(&Pointer::ROOT.key("distributed"), "")
            .note("leave `--standalone` out, or remove `distributed` for separate runs"),
    );
}

fn advice(role: &RoleView<'_>, launcher: Launcher, flag: &str, number: &str) -> String {
    let set = format!("`distributed` sets it to the number of {number}");
    let framework = match launcher {
        Launcher::Deepspeed => "deepspeed",
        Launcher::Accelerate => "accelerate",
        _ => "torchrun",
    };
    if launcher == Launcher::Accelerate && !role.has_variable("MASTER_ADDR") {
        format!("write the number of {number}")
    } else if role.member.is_some() {
        format!("leave `{flag}` out: {set}")
    } else {
        let name = &role.plan.name;
        format!(
            "leave `{flag}` out and write `distributed: {{framework: {framework}, roles: [{name}]}}`: {set}"
        )
    }
}
