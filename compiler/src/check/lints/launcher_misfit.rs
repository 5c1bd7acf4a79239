//! J0309: a command that does not match the framework of `distributed`.

use jobc_schema::Pointer;
use jobc_schema::distributed::Framework;
use jobc_schema::plan::Launch;

use crate::check::command::{Command, Launcher};
use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Severity, Sink, codes};
use crate::resolve::framework_name;

/// Words that show that something else in the command starts the processes.
const RANK_LAUNCHERS: [&str; 7] =
    ["torchrun", "torch.distributed", "mpirun", "mpiexec", "horovodrun", "PET_", "srun"];

/// Programs that may come after the one that does the work.
const AFTER: [&str; 14] =
    ["echo", "printf", "wait", "exit", "ls", "true", "date", "fi", "done", "}", "tee", "cp", "mv", "cat"];

/// Rejects a member's command that would run as separate jobs, or that waits for instances that never start it.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    let Some(distributed) = &view.plan.distributed else { return };
    for role in &view.roles {
        if role.member.is_none() || role.peers(view) < 2 || role.plan.launch == Launch::None {
            continue;
        }
        let misfit = unlaunched(role, distributed.framework).or_else(|| {
            let launched = |command: &Command| {
                let launcher = command.launcher()?;
                first_only(role, distributed.framework, launcher, command)
                    .or_else(|| unready(role, distributed.framework, launcher, command))
                    .or_else(|| everywhere(role, distributed.framework, launcher, command))
            };
            role.commands.iter().find_map(launched)
        });
        let Some(misfit) = misfit else { continue };
        let place = Pointer::ROOT.keys(["distributed", misfit.key]);
        let mut found = Diagnostic::new(codes::LAUNCHER_MISFIT, misfit.severity, misfit.message)
            .at(&role.run_at(), "")
            .at(&place, "");
        found.notes = misfit.notes;
        if let Some((old, new)) = misfit.words {
            found = found.reword(&role.run_at(), &old, &new);
        }
        if misfit.key == "launch" {
            found = found.remove(&place);
        }
        if let Some(framework) = misfit.framework {
            found = found.set(&Pointer::ROOT.keys(["distributed", "framework"]), framework);
        }
        sink.push(found);
    }
}

/// The mismatch, and the suggested fix.
struct Misfit {
    severity: Severity,
    /// The key of `distributed` that it does not fit.
    key: &'static str,
    message: String,
    notes: Vec<String>,
    /// Words of the command, and those to write in their place.
    words: Option<(String, String)>,
    /// The framework to write.
    framework: Option<&'static str>,
}

fn refused(key: &'static str, message: String, notes: &[&str]) -> Misfit {
    Misfit {
        severity: Severity::Error,
        key,
        message,
        notes: notes.iter().map(|&note| note.to_owned()).collect(),
        words: None,
        framework: None,
    }
}

/// Plain `python` where the framework only prepares what a launcher reads.
///
/// A module may be a launcher itself, and `python` next to MPI may start `mpirun`: a warning in these cases.
fn unlaunched(role: &RoleView<'_>, framework: Framework) -> Option<Misfit> {
    let command = role.commands.iter().rfind(|command| !AFTER.contains(&command.program()))?;
    if role.commands.iter().any(|c| c.launcher().is_some())
        || role.mentions(&RANK_LAUNCHERS)
        || role.knows_index()
    {
        return None;
    }
    let (file, name) = (command.python_file(), &role.plan.name);
    let program = file.or_else(|| command.python_module())?;
    let alone = command.words.first().is_some_and(|word| word == program);
    let shown = if alone {
        program.to_owned()
    } else if file.is_some() {
        format!("python {program}")
    } else {
        format!("python -m {program}")
    };
    let (launcher, rest) = match framework {
        Framework::Torchrun => {
            ("torchrun", if file.is_some() { program.to_owned() } else { format!("-m {program}") })
        }
        Framework::Deepspeed => {
            ("deepspeed", if file.is_some() { program.to_owned() } else { format!("--module {program}") })
        }
        Framework::Mpi => ("mpirun", shown.clone()),
        Framework::Horovod => ("horovodrun", shown.clone()),
        Framework::Accelerate => {
            ("accelerate launch", if file.is_some() { program.to_owned() } else { format!("-m {program}") })
        }
        Framework::Composer => {
            ("composer", if file.is_some() { program.to_owned() } else { format!("-m {program}") })
        }
        // Lightning starts the processes itself.
        Framework::Ddp | Framework::Tensorflow | Framework::Jax | Framework::Ray | Framework::Lightning => {
            return None;
        }
    };
    let instances = role.plan.instances;
    let message = if role.plan.launch == Launch::First {
        format!(
            "only the first instance of role `{name}` runs `{shown}`, and nothing starts the processes of the others"
        )
    } else if instances > 1 {
        format!(
            "nothing joins the {instances} instances of role `{name}`: each runs `{shown}` alone, as {instances} separate runs"
        )
    } else {
        format!("nothing joins role `{name}` to the other instances: `{shown}` runs alone")
    };
    // A file that starts itself may start a launcher.
    let certain = file.is_some() && !alone && matches!(framework, Framework::Torchrun | Framework::Deepspeed);
    let mut notes = vec![format!("write `{launcher} {rest}` instead of `{shown}`")];
    if framework == Framework::Torchrun {
        notes.push("for one process on each instance, write `framework: ddp`".to_owned());
    }
    Some(Misfit {
        severity: if certain { Severity::Error } else { Severity::Warning },
        key: "framework",
        message,
        notes,
        words: Some((command.until(program), format!("{launcher} {rest}"))),
        framework: (framework == Framework::Torchrun).then_some("ddp"),
    })
}

/// `accelerate launch` where the framework does not complete its line: the rank of a machine is a flag, or 0.
fn unready(
    role: &RoleView<'_>,
    framework: Framework,
    launcher: Launcher,
    command: &Command,
) -> Option<Misfit> {
    let is_set = ["--machine_rank"];
    if launcher != Launcher::Accelerate
        || framework == Framework::Accelerate
        || role.plan.launch != Launch::All
        || command.one_of(&is_set).is_some()
    {
        return None;
    }
    let message = format!(
        "`framework: {}` does not tell `accelerate launch` in role `{}` which machine it is on: it reads flags, and no variables",
        framework_name(framework),
        role.plan.name
    );
    let notes = vec!["write `framework: accelerate`, which adds the flags that the command lacks".to_owned()];
    let framework = Some("accelerate");
    Some(Misfit { severity: Severity::Warning, key: "framework", message, notes, words: None, framework })
}

/// A launcher that every instance must run, where only the first one does.
fn first_only(
    role: &RoleView<'_>,
    framework: Framework,
    launcher: Launcher,
    command: &Command,
) -> Option<Misfit> {
    if role.plan.launch != Launch::First {
        return None;
    }
    let name = &role.plan.name;
    if command.has("--no_ssh") && launcher == Launcher::Deepspeed {
        let message = format!(
            "`deepspeed --no_ssh` must run in every instance of role `{name}`, but only the first runs it"
        );
        return Some(refused(
            "framework",
            message,
            &["write `launch: all` under `distributed`, or leave `--no_ssh` out"],
        ));
    }
    // With a host file or a configuration `accelerate launch` starts the others by ssh.
    let starts =
        launcher == Launcher::Accelerate && role.mentions(&["hostfile", "config_file", "config-file"]);
    if launcher.starts_peers() || starts {
        return None;
    }
    let written = framework_name(framework);
    let message = format!(
        "`{}` must run in every instance of role `{name}`, but with `framework: {written}` only the first runs it",
        launcher.name()
    );
    let instead = match launcher {
        Launcher::Accelerate => "accelerate",
        Launcher::Composer => "composer",
        _ => "torchrun",
    };
    let note = format!("write `framework: {instead}`, which every instance runs");
    let misfit = refused("framework", message, &[note.as_str()]);
    Some(Misfit { framework: Some(instead), ..misfit })
}

/// A launcher that starts the processes of all instances, where every instance runs it.
fn everywhere(
    role: &RoleView<'_>,
    framework: Framework,
    launcher: Launcher,
    command: &Command,
) -> Option<Misfit> {
    let fits = matches!(framework, Framework::Deepspeed | Framework::Mpi | Framework::Horovod);
    let instances = role.plan.instances;
    if role.plan.launch != Launch::All
        || instances < 2
        || !fits
        || !launcher.starts_peers()
        || role.knows_index()
    {
        return None;
    }
    let (name, program) = (&role.plan.name, launcher.name());
    if launcher == Launcher::Deepspeed && (command.has("--no_ssh") || role.mentions(&["hostfile"])) {
        return None;
    }
    let message = format!(
        "with `launch: all` each of the {instances} instances of role `{name}` runs `{program}`: they train as {instances} separate runs"
    );
    let alone =
        "deepspeed --no_ssh --node_rank=$JOBC_INDEX --master_addr=$MASTER_ADDR --hostfile=$JOBC_HOSTFILE";
    let mut notes = vec!["remove `launch: all`: the first instance starts the processes of the others"];
    if launcher == Launcher::Deepspeed {
        notes.push("or write `deepspeed --no_ssh --node_rank=$JOBC_INDEX --master_addr=$MASTER_ADDR --hostfile=$JOBC_HOSTFILE`");
    }
    let words = (launcher == Launcher::Deepspeed).then(|| ("deepspeed".to_owned(), alone.to_owned()));
    Some(Misfit { words, ..refused("launch", message, &notes) })
}
