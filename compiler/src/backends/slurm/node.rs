//! Tasks that jobc runs on the nodes: the plan of their steps, and what each of them runs.
//!
//! `jobc node`, the last line of the batch script, decides what `jobc run` would. It starts each attempt of a task by an
//! `srun` of its own, and in it the script of the role, which sets what the command needs and becomes it.

use std::fmt::Write as _;

use jobc_schema::plan::{CODE, Launch, ProbePlan, Reference, RolePlan, Text};
use jobc_schema::shell::quote;
use jobc_schema::steps::{OpenPort, PortRange, RoleSteps, StepsPlan};
use jobc_schema::target::SlurmContainer;

use crate::backend::{Content, File, FilePart, Origin, PartSource};

use super::group::Group;
use super::parts::Parts;
use super::shell::Filling;
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

/// The program that runs the tasks, if the target has one and it can.
pub(super) fn program<'a>(parts: &Parts<'a>, group: &Group<'_>) -> Option<&'a str> {
    let program = parts.settings.jobc.as_deref().filter(|program| program.starts_with('/'))?;
    let is_plain = |role: &&RolePlan| {
        role.launch == Launch::All
            && !run::reaches_others(parts.job, role)
            && !run::is_mpi_step(parts.job, role)
    };
    let can = parts.container() != SlurmContainer::Oci && group.roles.iter().all(is_plain);
    can.then_some(program)
}

/// The last line of the batch script.
pub(super) fn line(program: &str, group: &Group<'_>) -> String {
    format!("exec {} node {}.json \"$@\"\n", quote(program), group.name)
}

/// The files that the line reads.
pub(super) fn files(parts: &Parts<'_>, group: &Group<'_>, program: &str) -> Vec<File> {
    let plan = serde_json::to_value(steps(parts, group, program)).expect("the plan is plain JSON");
    let scripts = group.roles.iter().map(|role| script(parts, role, program));
    std::iter::once(File::new(format!("{}.json", group.name), Content::Json(plan))).chain(scripts).collect()
}

fn steps(parts: &Parts<'_>, group: &Group<'_>, program: &str) -> StepsPlan {
    let roles = group.roles.iter().map(|role| {
        let (component, first_node) = group.nodes_of(role);
        RoleSteps {
            role: role.name.clone(),
            component: u32::try_from(component).unwrap_or(u32::MAX),
            first_node,
            step: command(parts, group, role, program),
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
        bundles: parts.container() == SlurmContainer::Jobc,
        code: parts.job.volumes.contains_key(CODE),
    }
}

/// The `srun` of a task.
fn command(parts: &Parts<'_>, group: &Group<'_>, role: &RolePlan, program: &str) -> String {
    let mut words = vec!["srun".to_owned()];
    words.extend(step::common(parts, group, role, 1, "\"$jobc_host\""));
    let program = quote(program);
    if parts.container() == SlurmContainer::Pyxis {
        let mount = format!("{program}:{program}:ro");
        let mut has_mounts = false;
        words.extend(step::pyxis(parts, role, &Places::SUPERVISED).into_iter().map(|option| {
            let is_mounts = option.starts_with("--container-mounts=");
            has_mounts |= is_mounts;
            if is_mounts { format!("{option},{mount}") } else { option }
        }));
        if !has_mounts {
            words.push(format!("--container-mounts={mount}"));
        }
    }
    let ready = role.ready.as_ref().map_or("", |_| "--ready ");
    words.push(format!(
        "{program} step-task {ready}\"$jobc_proctrack\" \"$jobc_directory/roles/{}.sh\" \"$jobc_addresses\"",
        role.name
    ));
    words.join(" ")
}

/// What each task of a role runs.
fn script(parts: &Parts<'_>, role: &RolePlan, program: &str) -> File {
    let mut body = String::new();
    probe(parts, role, &mut body);
    role_script::surroundings(parts, role, &mut body);
    if run::waits_for_program(role) && parts.container() != SlurmContainer::Jobc {
        body.push_str(SET_TRAP);
    }
    let _ = writeln!(body, "exec {}", run::command_line(parts, role, Some(program)));
    let mut text = format!(
        "#!/bin/bash\n# What a task of role {} of job {} runs. $1 has the addresses of all.\n. \"$1\"\nexport -n jobc_index jobc_host jobc_task jobc_addresses\njobc_role={0} jobc_etc=$jobc_run/etc/{0}-$jobc_index\n",
        role.name, parts.job.name
    );
    if body.contains("jobc_list ") || body.contains("jobc_numbers ") {
        text.push_str(role_script::LIST);
    }
    if body.contains("jobc_secret ") {
        text.push_str(SECRET);
    }
    if body.contains("jobc_say ") {
        text.push_str("jobc_say() { echo \"jobc: $*\" >&2; }\n");
    }
    text.push_str(&body);
    let mut file = File::new(format!("roles/{}.sh", role.name), Content::Text(text));
    file.mode = 0o755;
    file.origins.push(Origin { part: FilePart::Line(1), from: PartSource::Spec(role.at()) });
    file
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
