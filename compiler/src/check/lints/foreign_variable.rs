//! J0353: a variable of another system or launcher, or a misspelled one of jobc, which nothing sets in the shell of a task.
//!
//! Who sets which: [`SYSTEMS`]; what jobc sets instead: the page of the code.

use jobc_schema::BackendName;
use jobc_schema::plan::CommandPlan;
use jobc_schema::target::KubernetesKind;

use super::launcher_alone;
use super::unset_variable::{is_bare, known};
use crate::check::command::{Command, expanded, plain, variables};
use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Location, Sink, codes};
use crate::suggest;

/// What a variable says, where jobc knows it as well.
#[derive(Clone, Copy)]
enum Fact {
    /// The number of the instance.
    Instance,
    /// The number of instances.
    Instances,
    /// The number of GPUs of an instance.
    Gpus,
    /// The number of all processes.
    World,
    /// The address of the first instance.
    Address,
    /// The port of the rendezvous.
    Port,
    /// The number of a process, which a launcher sets in those that it starts.
    Process,
    /// The directory in which the job starts.
    Directory,
    /// The file with a line for each host.
    HostFile,
    /// The address of a cluster of Ray.
    Ray,
}

/// A system with its variables: the beginnings of all, and those whose fact jobc knows.
struct System {
    name: &'static str,
    begins: &'static [&'static str],
    facts: &'static [(&'static str, Fact)],
}

/// The variables are those of PyTorch's `torch/distributed/run.py`, `man srun` and `man sbatch`, `man mpirun` of Open MPI,
/// Kubernetes' Indexed Jobs, Volcano's plug-ins `env` and `svc`, SkyPilot's "Environment variables", the manuals of PBS
/// and LSF, Ray's "Ray Core CLI", and OpenPAI's runtime.
const SYSTEMS: [System; 10] = [
    System {
        name: "PyTorch's launchers",
        begins: &[],
        facts: &[
            ("MASTER_ADDR", Fact::Address),
            ("MASTER_PORT", Fact::Port),
            ("NODE_RANK", Fact::Instance),
            ("GROUP_RANK", Fact::Instance),
            ("NNODES", Fact::Instances),
            ("NPROC_PER_NODE", Fact::Gpus),
            ("WORLD_SIZE", Fact::World),
            ("RANK", Fact::Process),
            ("LOCAL_RANK", Fact::Process),
            ("LOCAL_WORLD_SIZE", Fact::Gpus),
        ],
    },
    System {
        name: "Slurm",
        begins: &["SLURM_", "SLURMD_"],
        facts: &[
            ("SLURM_NODEID", Fact::Instance),
            ("SLURM_PROCID", Fact::Instance),
            ("SLURM_NNODES", Fact::Instances),
            ("SLURM_JOB_NUM_NODES", Fact::Instances),
            ("SLURM_GPUS_ON_NODE", Fact::Gpus),
            ("SLURM_GPUS_PER_NODE", Fact::Gpus),
            ("SLURM_LAUNCH_NODE_IPADDR", Fact::Address),
            ("SLURM_SUBMIT_DIR", Fact::Directory),
        ],
    },
    System {
        name: "MPI's launchers",
        begins: &["OMPI_COMM_WORLD_", "PMI_", "PMIX_", "MV2_COMM_WORLD_"],
        facts: &[
            ("OMPI_COMM_WORLD_RANK", Fact::Process),
            ("OMPI_COMM_WORLD_LOCAL_RANK", Fact::Process),
            ("OMPI_COMM_WORLD_SIZE", Fact::World),
            ("PMI_RANK", Fact::Process),
            ("PMI_SIZE", Fact::World),
            ("PMIX_RANK", Fact::Process),
        ],
    },
    System {
        name: "Kubernetes' Indexed Jobs",
        begins: &["JOB_COMPLETION_INDEX"],
        facts: &[("JOB_COMPLETION_INDEX", Fact::Instance)],
    },
    System {
        name: "Volcano",
        begins: &["VC_", "VK_TASK_INDEX"],
        facts: &[("VC_TASK_INDEX", Fact::Instance), ("VK_TASK_INDEX", Fact::Instance)],
    },
    System {
        name: "SkyPilot",
        begins: &["SKYPILOT_"],
        facts: &[
            ("SKYPILOT_NODE_RANK", Fact::Instance),
            ("SKYPILOT_NUM_NODES", Fact::Instances),
            ("SKYPILOT_NUM_GPUS_PER_NODE", Fact::Gpus),
        ],
    },
    System {
        name: "PBS",
        begins: &["PBS_"],
        facts: &[("PBS_NODEFILE", Fact::HostFile), ("PBS_O_WORKDIR", Fact::Directory)],
    },
    System { name: "Ray", begins: &["RAY_ADDRESS"], facts: &[("RAY_ADDRESS", Fact::Ray)] },
    System { name: "LSF", begins: &["LSB_"], facts: &[("LSB_DJOB_HOSTFILE", Fact::HostFile)] },
    System {
        name: "OpenPAI",
        begins: &["PAI_"],
        facts: &[
            ("PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX", Fact::Instance),
            ("PAI_TASK_INDEX", Fact::Instance),
        ],
    },
];

/// Warns about `$SLURM_NODEID` where no Slurm is, `$RANK` where no launcher has started the shell, and the like.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in &view.roles {
        let CommandPlan::Script { setup, script, .. } = &role.plan.command else { continue };
        // A file that is read into the shell may set anything; what has no commands is not for a shell.
        let reads = |program: &str| ["source", ".", "eval"].contains(&program);
        if role.commands.is_empty() || role.commands.iter().any(|command| reads(command.program())) {
            continue;
        }
        // A launcher outside of `distributed` has its own finding (J0301).
        let alone = launcher_alone::launcher(view, role).is_some();
        let is_set = |name: &str, system: &System| {
            let has_finding = alone && system.begins.is_empty();
            has_finding || sets(view, system) || role.has_variable(name) || assigns(&role.text, name)
        };
        let texts = [("setup", setup.as_ref().map(plain)), ("run", Some(plain(script)))];
        let mut set = known(view, role);
        for (key, text) in texts.iter().filter_map(|(key, text)| Some((*key, text.as_deref()?))) {
            let scanned = expanded(text);
            for (name, at) in variables(text).filter(|(_, at)| scanned.contains(at)) {
                let own = misspelled(role, name).filter(|_| is_bare(text, name, at) && set.insert(name));
                if let Some(advice) = own {
                    let written = written(text, name, at);
                    let place = Location::inside(&role.at().key(key), text, at..at + written.len());
                    let message = format!("nothing sets `{name}` in the shell of role `{}`", role.plan.name);
                    let found = Diagnostic::warning(codes::FOREIGN_VARIABLE, message).at_place(place, "");
                    sink.push(match advice {
                        Ok(near) => {
                            let near = written.replace(name, near);
                            found.note(format!("did you mean `{near}`?")).reword(
                                &role.run_at(),
                                written,
                                &near,
                            )
                        }
                        Err(note) => found.note(note),
                    });
                    continue;
                }
                let Some((system, fact)) = find(name).filter(|(system, _)| !is_set(name, system)) else {
                    continue;
                };
                if is_bare(text, name, at) && set.insert(name) {
                    let written = written(text, name, at);
                    let place = Location::inside(&role.at().key(key), text, at..at + written.len());
                    let found = report(view, role, name, system).at_place(place, "");
                    let fact = if is_rank_of_instance(&text[..at]) { Some(Fact::Instance) } else { fact };
                    sink.push(advise(view, role, found, (written, system, fact)));
                }
            }
        }
    }
}

/// What to write for a variable of jobc that the role does not have: its name, or where it is set. Nothing for the
/// settings of jobc itself, such as `JOBC_COLOR`.
fn misspelled<'r>(role: &'r RoleView<'_>, name: &str) -> Option<Result<&'r str, &'static str>> {
    if !name.starts_with("JOBC_") || role.has_variable(name) || assigns(&role.text, name) {
        return None;
    }
    let known = role.by_name.iter().map(String::as_str);
    if let Some(near) = suggest::nearest(name, known) {
        return Some(Ok(near));
    }
    match name {
        "JOBC_RANK" | "JOBC_WORLD_SIZE" | "JOBC_HOSTFILE" => Some(Err(
            "it is set in the roles of `distributed`; `JOBC_INDEX` and `JOBC_INSTANCES` are set in all",
        )),
        "JOBC_ATTEMPT" | "JOBC_RESUME" | "JOBC_CHECKPOINT_DIR" => Some(Err(
            "write `preemption: {checkpoint: OUTPUT}` in the job, with an output that the role mounts",
        )),
        _ if name.starts_with("JOBC_PORT_") => {
            Some(Err("declare the port under `resources: {ports: …}` of the role"))
        }
        _ => None,
    }
}

fn find(name: &str) -> Option<(&'static System, Option<Fact>)> {
    SYSTEMS.iter().find_map(|system| {
        let fact = system.facts.iter().find(|(known, _)| *known == name).map(|(_, fact)| *fact);
        let begins = system.begins.iter().any(|begin| name.starts_with(begin));
        (fact.is_some() || begins).then_some((system, fact))
    })
}

/// Whether a variable behind this text is the value of a launcher's flag for the number of the instance.
fn is_rank_of_instance(before: &str) -> bool {
    let before = before.trim_end_matches(['=', ' ', '"', '\'']);
    ["--node_rank", "--node-rank", "--machine_rank", "--machine-rank"]
        .iter()
        .any(|flag| before.ends_with(flag))
}

/// Whether a text sets a variable somewhere: `NAME=…`, or as a word of `read` or `for`.
fn assigns(text: &str, name: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$' || c == '{';
    text.match_indices(name).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        let line = before.rsplit('\n').next().unwrap_or_default();
        let named = line.split([';', '|', '&']).next_back().unwrap_or_default();
        let reads = ["read", "for", "getopts", "mapfile", "readarray", "printf -v"]
            .iter()
            .any(|word| named.contains(word));
        !before.ends_with(is_word) && (after.starts_with('=') || after.starts_with("+=") || reads)
    })
}

/// Whether the target sets the variables of a system in every task.
fn sets(view: &View<'_>, system: &System) -> bool {
    let kind = view.plan.target.settings.kubernetes.as_ref().map(|kubernetes| kubernetes.kind);
    match system.name {
        // Processes of a step have those of PMI as well.
        "Slurm" | "MPI's launchers" => view.has_backend(BackendName::Slurm),
        "OpenPAI" => view.has_backend(BackendName::Openpai),
        "Kubernetes' Indexed Jobs" | "Volcano" => view.has_backend(BackendName::Kubernetes),
        "PyTorch's launchers" => matches!(kind, Some(KubernetesKind::Pytorchjob | KubernetesKind::Trainjob)),
        _ => false,
    }
}

/// The variable as the script has it: `$NAME` or `${NAME}`.
fn written<'t>(text: &'t str, name: &str, at: usize) -> &'t str {
    let braces = if text[at + 1..].starts_with('{') { 2 } else { 0 };
    &text[at..=at + name.len() + braces]
}

fn report(view: &View<'_>, role: &RoleView<'_>, name: &str, system: &System) -> Diagnostic {
    let target = match system.begins {
        [] => String::new(),
        _ => format!(" on target `{}`", view.plan.target.name),
    };
    let message = format!(
        "nothing sets `{name}` in the shell of role `{}`{target}: it is a variable of {}",
        role.plan.name, system.name
    );
    Diagnostic::warning(codes::FOREIGN_VARIABLE, message)
}

fn advise(
    view: &View<'_>,
    role: &RoleView<'_>,
    found: Diagnostic,
    (written, system, fact): (&str, &System, Option<Fact>),
) -> Diagnostic {
    match fact.and_then(|fact| own(role, fact)) {
        Some((own, what)) => {
            found.note(format!("write `{own}`, {what}")).reword(&role.run_at(), written, &own)
        }
        None => found.note(advice(view, role, system, fact)),
    }
}

/// What jobc has for a fact, and what it is.
fn own(role: &RoleView<'_>, fact: Fact) -> Option<(String, &'static str)> {
    let first = |names: &[&str]| {
        let name = names.iter().find(|name| role.provides(name))?;
        Some(format!("${name}"))
    };
    Some(match fact {
        Fact::Instance => (first(&["JOBC_RANK", "JOBC_INDEX"])?, "the number of the instance"),
        Fact::Instances => (first(&["PET_NNODES", "JOBC_INSTANCES"])?, "the number of instances"),
        Fact::Gpus if role.gpus() > 0 => (role.gpus().to_string(), "the GPUs of an instance"),
        Fact::World => (first(&["JOBC_WORLD_SIZE"])?, "the number of all processes"),
        Fact::Address => {
            let expression = || format!("${{{{ hosts.{}[0] }}}}", role.plan.name);
            let address = first(&["PET_MASTER_ADDR", "MASTER_ADDR"]).unwrap_or_else(expression);
            (address, "the address of the first instance")
        }
        Fact::Port => {
            let port = first(&["PET_MASTER_PORT", "MASTER_PORT", "JOBC_PORT_RENDEZVOUS"])?;
            (port, "the port of the rendezvous")
        }
        Fact::HostFile => (first(&["JOBC_HOSTFILE"])?, "the file with a line for each instance"),
        Fact::Gpus | Fact::Process | Fact::Directory | Fact::Ray => return None,
    })
}

/// What to do where no variable says the same.
fn advice(view: &View<'_>, role: &RoleView<'_>, system: &System, fact: Option<Fact>) -> String {
    let launcher = role.commands.iter().find_map(Command::launcher);
    match (fact, launcher) {
        (Some(Fact::Process), Some(launcher)) => format!(
            "`{}` sets it in the processes that it starts: read it there, as in `os.environ` of Python",
            launcher.name()
        ),
        (Some(Fact::World | Fact::Process | Fact::Port | Fact::HostFile), _)
            if view.plan.distributed.is_none() =>
        {
            let framework = if matches!(fact, Some(Fact::HostFile)) { "mpi" } else { "ddp" };
            format!(
                "`distributed: {{framework: {framework}, roles: [{}]}}` sets what processes need to meet",
                role.plan.name
            )
        }
        (Some(Fact::Ray), _) => {
            "`framework: ray` under `distributed` starts a cluster and sets it; the address of another cluster belongs in `env`"
                .to_owned()
        }
        (Some(Fact::Directory), _) => {
            "commands start in `workdir`, and see the directory of the job with `cwd: true` or `copy`"
                .to_owned()
        }
        _ if system.name == "OpenPAI" => {
            "`compat: [openpai]` sets those of OpenPAI on every target".to_owned()
        }
        _ if system.name == "Slurm" => {
            "`jobc explain J0353` lists what every target sets; a target with `backends: [slurm]` has Slurm's"
                .to_owned()
        }
        _ => "`jobc explain J0353` lists what every target sets".to_owned(),
    }
}

#[cfg(test)]
mod tests;
