//! The batch script of a group: the request, the part specific to the job, and the common part.

use std::fmt::Write as _;

use jobc_schema::plan::{JobPlan, Launch, RolePlan};
use jobc_schema::role::{NeedState, RetryScope};
use jobc_schema::shell::quote;

use crate::backend::{Content, File, FilePart, Origin, PartSource};

use super::form::{self, Form};
use super::group::Group;
use super::parts::Parts;
use super::shell::{exit_codes, variable};
use super::{bundle, code, direct, header, node, ports, step};

/// The end of every batch script.
const COMMON: &str = include_str!("batch.sh");

/// The script of a group.
pub(super) fn script(parts: &Parts<'_>, groups: &[Group<'_>], group: &Group<'_>) -> File {
    let mut text = "#!/bin/bash\n".to_owned();
    let mut origins = vec![];
    let request = form::request(parts, groups, group);
    for (number, line) in header::lines(parts, groups, group, &request).into_iter().enumerate() {
        let _ = writeln!(text, "{}", line.text);
        if let Some(from) = line.from {
            let number = u32::try_from(number + 2).unwrap_or(u32::MAX);
            origins.push(Origin { part: FilePart::Line(number), from });
        }
    }
    let file = format!("{}.sbatch", group.name);
    if !group.after.is_empty() {
        // For `jobc submit`, which submits the scripts by itself.
        let after: Vec<&str> = group.after.iter().map(|other| groups[*other].name.as_str()).collect();
        let _ = writeln!(text, "#JOBC --after={}", after.join(","));
    }
    let reason = match form::of(parts, groups, group) {
        Form::Direct(direct) => {
            let _ = writeln!(text, "{}", about(parts.job, groups, group, &file));
            modules(parts, &mut text);
            text.push_str(&direct::body(parts, &direct, request.retries));
            return made(file, text, origins);
        }
        Form::Node(reason, program) => {
            let _ = writeln!(
                text,
                "{}# jobc runs its tasks: {reason}.\n\nexport SLURM_EXPORT_ENV=ALL PATH",
                about(parts.job, groups, group, &file)
            );
            modules(parts, &mut text);
            text.push_str(&node::line(program, group));
            return made(file, text, origins);
        }
        Form::Supervised(reason) => reason,
    };
    let _ = writeln!(
        text,
        "{}# A supervisor runs its tasks: {reason}.\n",
        about(parts.job, groups, group, &file)
    );
    // Otherwise srun would only pass on what sbatch passed on.
    text.push_str("export SLURM_EXPORT_ENV=ALL PATH\n");
    modules(parts, &mut text);
    facts(parts, group, &mut text);
    assign(parts, group, &mut text);
    needs(parts.job, group, &mut text);
    launch(group, &mut text);
    let started: Vec<&RolePlan> = with_step(group).collect();
    for role in &started {
        let line = u32::try_from(text.lines().count() + 1).unwrap_or(u32::MAX);
        text.push_str(&step::function(parts, group, role));
        origins.push(Origin { part: FilePart::Line(line), from: PartSource::Spec(role.at()) });
    }
    text.push_str("jobc_step() { # ROLE\n  case $1 in\n");
    for role in &started {
        let _ = writeln!(text, "    {}) jobc_step_{} ;;", role.name, variable(&role.name));
    }
    text.push_str("  esac\n}\n\n");
    text.push_str(&bundle::places(parts, group));
    text.push_str(COMMON);
    made(file, text, origins)
}

fn made(file: String, text: String, origins: Vec<Origin>) -> File {
    let mut file = File::new(file, Content::Text(text));
    file.mode = 0o755;
    file.origins = origins;
    file
}

/// The roles that run something; the others only hold nodes for one that launches there.
pub(super) fn with_step<'a>(group: &'a Group<'_>) -> impl Iterator<Item = &'a RolePlan> {
    group.roles.iter().copied().filter(|role| role.launch != Launch::None)
}

fn about(job: &JobPlan, groups: &[Group<'_>], group: &Group<'_>, file: &str) -> String {
    let names = group.roles.iter().map(|role| role.name.as_str()).collect::<Vec<_>>().join(", ");
    let how = if groups.len() > 1 { "`./submit.sh`".to_owned() } else { format!("`sbatch {file}`") };
    format!("# Job {}: {names}. Submit it in this directory: {how}.\n", job.name)
}

fn modules(parts: &Parts<'_>, text: &mut String) {
    if !parts.settings.modules.is_empty() {
        text.push_str("command -v module >/dev/null || . /etc/profile\n");
        let _ = writeln!(text, "module load {} || exit 125", parts.settings.modules.join(" "));
    }
}

/// The variables that the common part reads.
fn facts(parts: &Parts<'_>, group: &Group<'_>, text: &mut String) {
    let job = parts.job;
    let names = with_step(group).map(|role| role.name.as_str()).collect::<Vec<_>>().join(" ");
    let known = job.roles.iter().map(|role| role.name.as_str()).collect::<Vec<_>>().join(" ");
    let probe = with_step(group).next().map(|role| format!("roles/{}.sh", role.name));
    let probe = probe.filter(|_| !step::is_oci(parts)).unwrap_or_else(|| format!("{}.sbatch", group.name));
    let grace = group.roles.iter().map(|role| role.grace_period_seconds).max().unwrap_or(30);
    let retried =
        || group.roles.iter().filter(|role| role.retry.scope == RetryScope::Job && role.retry.max > 0);
    let restarts: String = retried().map(|role| format!("[{}]={} ", role.name, role.retry.max)).collect();
    let codes: String = retried()
        .filter(|role| role.retry.has_final_codes())
        .map(|role| format!("[{}]='{}' ", role.name, exit_codes(&role.retry)))
        .collect();
    text.push_str("\njobc_directory=$PWD\n");
    match &parts.settings.directory {
        Some(directory) => {
            let _ = writeln!(text, "jobc_base={}", quote(directory));
        }
        // Next to the target directory, so that files written by jobs do not interfere with builds.
        None => text.push_str("jobc_base=${PWD%/slurm}.slurm\n"),
    }
    text.push_str("jobc_secrets=${jobc_secrets-${PWD%/slurm}.slurm/secrets} jobc_bundles=${PWD%/slurm}.slurm/bundles-$SLURM_JOB_ID\n");
    let _ = writeln!(
        text,
        "jobc_group={} jobc_probe={probe} jobc_grace={grace} jobc_max_restarts={}",
        group.name,
        header::job_retries(group, false)
    );
    let _ = writeln!(
        text,
        "jobc_first_port={} jobc_port_range={} jobc_ports={}",
        ports::FIRST,
        ports::COUNT,
        parts.ports.total
    );
    let _ = writeln!(text, "jobc_roles=({names}) jobc_known=({known})");
    let _ = writeln!(
        text,
        "declare -A jobc_restarts=({}) jobc_restart_codes=({})\n",
        restarts.trim_end(),
        codes.trim_end()
    );
}

/// Which nodes each role gets.
fn assign(parts: &Parts<'_>, group: &Group<'_>, text: &mut String) {
    let (unpack, call) = code::unpacking(parts);
    let _ = write!(text, "{unpack}# One node for each instance.\njobc_assign() {{\n  local nodes\n{call}");
    for (number, component) in group.components.iter().enumerate() {
        let list = if group.is_heterogeneous() {
            format!("SLURM_JOB_NODELIST_HET_GROUP_{number}")
        } else {
            "SLURM_JOB_NODELIST".to_owned()
        };
        let _ = writeln!(text, "  nodes=($(jobc_nodes {list})) || return");
        for role in &component.roles {
            let (_, first) = group.nodes_of(role);
            let _ = writeln!(
                text,
                "  jobc_hosts_{}=(\"${{nodes[@]:{first}:{}}}\")",
                variable(&role.name),
                role.instances
            );
        }
    }
    text.push_str("}\n");
}

/// The conditions for the start of each role.
fn needs(job: &JobPlan, group: &Group<'_>, text: &mut String) {
    text.push_str("# Whether a role may start.\njobc_needs() { # ROLE\n  case $1 in\n");
    for role in with_step(group) {
        let own = role.needs.iter().filter(|need| with_step(group).any(|other| other.name == need.role));
        let tests: Vec<String> = own
            .map(|need| {
                let other = job.role(&need.role);
                let all = other.is_some_and(|other| {
                    need.min >= other.instances && other.completion.min_failed == Some(1)
                });
                match need.state {
                    NeedState::Started => format!("jobc_reached started {} {}", need.role, need.min),
                    NeedState::Ready => format!("jobc_reached ready {} {}", need.role, need.min),
                    NeedState::Succeeded if all => format!("jobc_succeeded {}", need.role),
                    NeedState::Succeeded => format!("jobc_reached succeeded {} {}", need.role, need.min),
                }
            })
            .collect();
        if !tests.is_empty() {
            let _ = writeln!(text, "    {}) {} ;;", role.name, tests.join(" && "));
        }
    }
    text.push_str("  esac\n}\n");
}

/// How each role's step is started: with how many retries, the time between, and the exit codes.
fn launch(group: &Group<'_>, text: &mut String) {
    text.push_str("# Runs a role to its end.\njobc_launch() { # ROLE\n  case $1 in\n");
    for role in with_step(group) {
        let retry = &role.retry;
        let max = if retry.scope == RetryScope::Role { retry.max } else { 0 };
        let line = format!(
            "    {0}) jobc_role {0} {max} {1} {2}",
            role.name,
            retry.backoff_seconds.unwrap_or(0),
            exit_codes(retry)
        );
        let _ = writeln!(text, "{} ;;", line.trim_end());
    }
    text.push_str("  esac\n}\n");
}
