//! Tasks that jobc runs on the nodes: the plan of their steps, and what each of them runs.
//!
//! `jobc node`, the last line of the batch script, decides what `jobc run` would. It starts each attempt of a task by an
//! `srun` of its own, and in it the script of the role, which sets what the command needs and becomes it. The ranks of a
//! program that uses MPI are one `srun`, as Slurm's PMI wants it.

use std::fmt::Write as _;

use jobc_schema::plan::{CODE, Launch, ProbePlan, Reference, RolePlan, Text};
use jobc_schema::shell::quote;
use jobc_schema::steps::{OpenPort, PortRange, RoleSteps, StepsPlan};
use jobc_schema::target::SlurmContainer;

use crate::backend::{Content, File, FilePart, Origin, PartSource};

use super::group::Group;
use super::parts::Parts;
use super::shell::{Filling, variable};
use super::volumes::Places;
use super::{ports, role as role_script, run, step};

/// Puts the value of a secret into a variable.
const SECRET: &str = r#"jobc_secret() { # VARIABLE SECRET
  [ -r "$jobc_secrets/$2" ] || { echo "no value of the secret $2: \`submit.sh\` writes it to $jobc_secrets/$2" >&2; exit 125; }
  IFS= read -r -d '' "$1" <"$jobc_secrets/$2" || :
  export "${1?}"
}
"#;

/// Lets the shell of a command outlive SIGTERM where Slurm sends it to all processes of a task.
const SET_TRAP: &str = "[ \"$jobc_proctrack\" = cgroup ] || export jobc_trap=:\n";

/// Launchers with Slurm support would start processes as steps, and wait for nodes that this step holds.
const NO_SLURM: &str =
    "for name in \"${!SLURM_@}\"; do [ \"$name\" = SLURM_CONF ] || unset \"$name\"; done\n";

/// The last line of the batch script.
pub(super) fn line(parts: &Parts<'_>, group: &Group<'_>) -> String {
    format!("exec {} node {}.json \"$@\"\n", parts.program(), group.name)
}

/// The files that the line reads.
pub(super) fn files(parts: &Parts<'_>, group: &Group<'_>) -> Vec<File> {
    let plan = serde_json::to_value(steps(parts, group)).expect("the plan is plain JSON");
    let scripts = group.roles.iter().map(|role| script(parts, group, role));
    std::iter::once(File::new(format!("{}.json", group.name), Content::Json(plan))).chain(scripts).collect()
}

fn steps(parts: &Parts<'_>, group: &Group<'_>) -> StepsPlan {
    let roles = group.roles.iter().map(|role| {
        let (component, first_node) = group.nodes_of(role);
        let ranks = run::is_mpi_step(parts.job, role);
        RoleSteps {
            role: role.name.clone(),
            component: u32::try_from(component).unwrap_or(u32::MAX),
            first_node,
            steps: match role.launch {
                Launch::All if !ranks => role.instances,
                Launch::All | Launch::First => 1,
                Launch::None => 0,
            },
            ranks,
            step: if role.launch == Launch::None { String::new() } else { command(parts, group, role) },
        }
    });
    let open = parts.job.roles.iter().flat_map(|role| {
        role.ports.iter().filter_map(|port| {
            let offset = parts.ports.offset(&role.name, &port.label)?;
            Some(OpenPort { role: role.name.clone(), label: port.label.clone(), offset, count: port.count })
        })
    });
    StepsPlan {
        version: 1,
        script: group.name.clone(),
        directory: parts.settings.directory.clone(),
        roles: roles.collect(),
        ports: PortRange {
            first: ports::FIRST,
            count: ports::COUNT,
            of_job: parts.ports.total,
            open: open.collect(),
        },
        bundles: matches!(parts.container(), SlurmContainer::Jobc | SlurmContainer::Oci),
        code: parts.job.volumes.contains_key(CODE),
    }
}

/// What starts a task, or all ranks of a role.
fn command(parts: &Parts<'_>, group: &Group<'_>, role: &RolePlan) -> String {
    let program = parts.program();
    let script = format!("\"$jobc_directory/roles/{}.sh\" \"$jobc_addresses\"", role.name);
    if step::is_oci(parts) {
        // Nothing of jobc is in the container: the agent stays here, and the script has the `srun`.
        return format!("{program} step-task cgroup {script}");
    }
    let is_mpi = run::is_mpi_step(parts.job, role);
    let mut words = vec!["srun".to_owned()];
    if is_mpi {
        let nodes = format!("\"$(IFS=,; echo \"${{jobc_hosts_{}[*]}}\")\"", variable(&role.name));
        words.extend(step::common(parts, group, role, role.instances, &nodes));
        words.push("--kill-on-bad-exit=1 --wait=0".to_owned());
    } else {
        words.extend(step::common(parts, group, role, 1, "\"$jobc_host\""));
    }
    if parts.container() == SlurmContainer::Pyxis {
        let mount = format!("{program}:{program}:ro");
        let mut has_mounts = false;
        words.extend(step::pyxis(parts, role, &Places::NODE).into_iter().map(|option| {
            let is_mounts = option.starts_with("--container-mounts=");
            has_mounts |= is_mounts;
            if is_mounts { format!("{option},{mount}") } else { option }
        }));
        if !has_mounts {
            words.push(format!("--container-mounts={mount}"));
        }
    }
    let ready = role.ready.as_ref().map_or("", |_| "--ready ");
    let rank = if is_mpi { "--rank " } else { "" };
    words.push(format!("{program} step-task {ready}{rank}\"$jobc_proctrack\" {script}"));
    words.join(" ")
}

/// What each task of a role runs.
fn script(parts: &Parts<'_>, group: &Group<'_>, role: &RolePlan) -> File {
    let (is_mpi, is_reached) = (run::is_mpi_step(parts.job, role), run::is_reached(parts.job, role));
    let mut body = String::new();
    probe(parts, role, &mut body);
    role_script::surroundings(parts, role, &mut body);
    if is_reached {
        launcher(parts, &mut body);
    }
    if is_mpi {
        let _ = writeln!(body, "exec >>\"$jobc_run/logs/{}-$jobc_index$jobc_log\" 2>&1", role.name);
    }
    let has_bundle = matches!(parts.container(), SlurmContainer::Jobc | SlurmContainer::Oci);
    if run::waits_for_program(role) && !has_bundle {
        body.push_str(SET_TRAP);
    }
    if role.launch != Launch::None {
        let mut words = vec![];
        if step::is_oci(parts) {
            words.push("srun".to_owned());
            words.extend(step::common(parts, group, role, 1, "\"$jobc_host\""));
            words.push("--container=\"$jobc_bundle\"".to_owned());
        }
        words.push(run::command_line(parts, role));
        let _ = writeln!(body, "exec {}", words.join(" "));
    }
    let mut text = format!(
        "#!/bin/bash\n# What a task of role {} of job {} runs. $1 has the addresses of all.\n. \"$1\"\nexport -n jobc_index jobc_host jobc_task jobc_addresses jobc_log\n",
        role.name, parts.job.name
    );
    if is_mpi || is_reached {
        let hosts = format!("jobc_hosts_{}", variable(&role.name));
        let _ = writeln!(
            text,
            "for jobc_index in \"${{!{hosts}[@]}}\"; do [ \"${{{hosts}[jobc_index]}}\" != \"$SLURMD_NODENAME\" ] || break; done"
        );
    }
    let _ = writeln!(text, "jobc_role={0} jobc_etc=$jobc_run/etc/{0}-$jobc_index", role.name);
    if body.contains("jobc_list ") || body.contains("jobc_numbers ") {
        text.push_str(role_script::LIST);
    }
    if body.contains("jobc_secret ") {
        text.push_str(SECRET);
    }
    text.push_str(&body);
    let mut file = File::new(format!("roles/{}.sh", role.name), Content::Text(text));
    file.mode = 0o755;
    file.origins.push(Origin { part: FilePart::Line(1), from: PartSource::Spec(role.at()) });
    file
}

/// The setup for a program that starts processes on other nodes, and the command that it asks for there.
fn launcher(parts: &Parts<'_>, out: &mut String) {
    for (name, value) in run::launcher_environment(parts.job) {
        let _ = writeln!(out, "export {name}={value}");
    }
    out.push_str("export PATH=\"$jobc_directory/bin:$PATH\" jobc_addresses=\"$1\"\n");
    out.push_str(NO_SLURM);
    out.push_str("[ $# -lt 2 ] || exec bash -c \"$2\"\n");
}

/// The check whether a task is ready, which its agent runs beside it.
fn probe(parts: &Parts<'_>, role: &RolePlan, out: &mut String) {
    let Some(ready) = &role.ready else { return };
    let filling = Filling { job: parts.job, ports: &parts.ports, role };
    let command = probe_command(&filling, &ready.probe);
    let _ = writeln!(
        out,
        "[ -z \"${{jobc_ready-}}\" ] || {{\n  sleep {}\n  until timeout {} {command}; do\n    [ \"$SECONDS\" -lt {} ] || exit 1\n    sleep {}\n  done\n  exit 0\n}}",
        ready.delay_seconds, ready.try_timeout_seconds, ready.timeout_seconds, ready.every_seconds
    );
}

/// The command of a check.
pub(super) fn probe_command(filling: &Filling<'_>, probe: &ProbePlan) -> String {
    let port = |label: &str| {
        let role = filling.role.name.clone();
        filling.word(&Text::reference(Reference::Port { role, label: label.to_owned(), index: None }))
    };
    match probe {
        ProbePlan::Port(label) => {
            format!("bash -c ': <\"/dev/tcp/127.0.0.1/$1\"' bash {}", port(label))
        }
        ProbePlan::Http { port: label, path } => format!(
            "bash -c 'exec 3<>\"/dev/tcp/127.0.0.1/$1\"; printf \"GET %s HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n\" \"$2\" >&3; read -r _ code _ <&3; [[ $code == [23]?? ]]' bash {} {}",
            port(label),
            quote(path)
        ),
        ProbePlan::Exec(argv) => filling.words(argv),
        // Rejected earlier.
        ProbePlan::Log(_) => "true".to_owned(),
    }
}
