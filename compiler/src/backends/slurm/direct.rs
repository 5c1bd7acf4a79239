//! A script that needs no jobc: `#SBATCH` lines, the variables of the framework, and one `srun`.
//!
//! `srun` replaces the shell, so nothing stays between Slurm and the tasks: signals go to the step, and the end of `srun`
//! is that of the job. Options after the name of the script are passed on to `srun`.

use std::fmt::Write as _;

use jobc_schema::plan::{CODE, EnvPlan, ImageSource, PreemptionPlan};
use jobc_schema::shell::quote;
use jobc_schema::target::SlurmContainer;

use super::form::Direct;
use super::header;
use super::parts::Parts;
use super::text::{NODES, uses_nodes};
use super::volumes::{self, Places};
use super::{code, contained, run, step};

/// The maximum length of a line of the script that jobc breaks.
const WIDTH: usize = 100;

/// The number of the attempt, which Slurm counts.
const ATTEMPT: &str = "export JOBC_ATTEMPT=$((${SLURM_RESTART_COUNT:-0} + 1)) JOBC_RESUME=\n[ \"$JOBC_ATTEMPT\" = 1 ] || JOBC_RESUME=1\n";

/// Has Slurm start a job again that had to leave. An end in the time that a preemption leaves would be that of the job.
fn resume(preemption: &PreemptionPlan, out: &mut String) {
    out.push_str("# A job that had to leave is started again. This ends the script, too.\n");
    out.push_str(
        "left=$(scontrol show job -o \"$SLURM_JOB_ID\" 2>/dev/null | grep -c ' PreemptTime=[0-9]')\n",
    );
    let by_code: Vec<String> =
        preemption.exit_codes.iter().map(|code| format!("[ \"$code\" = {code} ] || ")).collect();
    let _ = writeln!(
        out,
        "if {}[ \"$left\" = 1 ]; then scontrol requeue \"$SLURM_JOB_ID\" && sleep 60; fi",
        by_code.concat()
    );
}

/// What follows the header of a script. `retries` is how often Slurm may start the job again after a failure.
pub(super) fn body(parts: &Parts<'_>, direct: &Direct<'_>, retries: u32) -> String {
    let mut out = String::new();
    // Otherwise srun would only pass on what sbatch passed on.
    out.push_str("export SLURM_EXPORT_ENV=ALL PATH\n");
    secrets(direct, &mut out);
    directories(parts, direct, &mut out);
    let is_jobc = direct.container == SlurmContainer::Jobc;
    let command = format!("{} {}", broken(&srun(parts, direct)), run_in(parts, direct));
    if is_jobc || direct.command.exports.iter().chain([&command]).any(|text| uses_nodes(text)) {
        let _ = writeln!(out, "{NODES}");
    }
    if is_jobc {
        let code = has_code(parts, direct).then_some(Places::DIRECT.code);
        contained::prepare(parts, direct.role, code, &mut out);
    }
    exports(&direct.command.exports, &mut out);
    let preemption = parts.job.preemption.as_ref();
    if preemption.is_some() && !is_jobc {
        out.push_str(ATTEMPT);
    }
    if retries == 0 && preemption.is_none() && !is_jobc {
        let _ = writeln!(out, "exec {command}");
        return out;
    }
    let _ = writeln!(out, "{command}\ncode=$?");
    if is_jobc {
        out.push_str("rm -rf \"$bundles\"\n");
    }
    if let Some(preemption) = preemption {
        resume(preemption, &mut out);
    }
    if retries == 0 {
        out.push_str("exit \"$code\"\n");
        return out;
    }
    let _ = writeln!(
        out,
        "# Slurm starts the job again, at most {retries} times. This ends the script, too.\n[ \"$code\" = 0 ] || [ \"${{SLURM_RESTART_COUNT:-0}}\" -ge {retries} ] || scontrol requeue \"$SLURM_JOB_ID\"\nexit \"$code\""
    );
    out
}

/// The variables with values of secrets, from the files that `submit.sh` writes.
fn secrets(direct: &Direct<'_>, out: &mut String) {
    let secret = |(name, value): (&'_ String, &'_ EnvPlan)| match value {
        EnvPlan::Secret { secret } => Some((name.clone(), secret.clone())),
        EnvPlan::Text(_) => None,
    };
    let found: Vec<(String, String)> = direct.role.env.iter().filter_map(secret).collect();
    if direct.container == SlurmContainer::Jobc {
        if run::uses_secrets(direct.role) {
            out.push_str("export secrets=${jobc_secrets:-${PWD%/slurm}.slurm/secrets}\n");
        }
        return;
    }
    if found.is_empty() {
        return;
    }
    out.push_str("secrets=${jobc_secrets:-${PWD%/slurm}.slurm/secrets}\n");
    for (name, secret) in &found {
        let _ = writeln!(out, "{name}=$(<\"$secrets/{secret}\") || exit 125");
    }
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    let _ = writeln!(out, "export {}", names.join(" "));
}

/// Whether the role has the code of the job.
fn has_code(parts: &Parts<'_>, direct: &Direct<'_>) -> bool {
    parts.job.volumes.contains_key(CODE) && direct.role.mounts.iter().any(|mount| mount.volume == CODE)
}

/// Makes directories of outputs, unpacks the code, and changes to where the command starts.
fn directories(parts: &Parts<'_>, direct: &Direct<'_>, out: &mut String) {
    let role = direct.role;
    if has_code(parts, direct) {
        let _ = writeln!(
            out,
            "code={}\nmkdir -p \"$code\" && tar -xzf code.tar.gz -C \"$code\" || exit 125",
            Places::DIRECT.code_of_job
        );
    }
    for bind in volumes::mounts_at(parts, role, &Places::DIRECT).iter().filter(|bind| bind.is_created) {
        let _ = writeln!(out, "mkdir -p {} || exit 125", bind.source);
    }
    if direct.container != SlurmContainer::None {
        return;
    }
    let source = parts.job.image_of(role).map(|image| &image.source);
    let callers = matches!(source, Some(ImageSource::Host { cwd: true, .. }));
    let directory = code::workdir(role, Places::DIRECT.code)
        .or_else(|| role.workdir.as_deref().map(quote))
        .or_else(|| callers.then(|| "\"$SLURM_SUBMIT_DIR\"".to_owned()));
    if let Some(directory) = directory {
        let _ = writeln!(out, "cd {directory} || exit 125");
    }
}

/// The words of a command, with a line break before a line gets too long.
fn broken(words: &[String]) -> String {
    let (mut out, mut width) = (String::new(), 0);
    for word in words {
        let length = word.chars().count() + 1;
        if width > 0 {
            let is_full = width + length > WIDTH;
            out.push_str(if is_full { " \\\n  " } else { " " });
            width = if is_full { 0 } else { width };
        }
        out.push_str(word);
        width += length;
    }
    out
}

/// Assignments, as many on a line as there is room for.
fn exports(list: &[String], out: &mut String) {
    let mut line = String::new();
    for assignment in list {
        if !line.is_empty() && line.chars().count() + assignment.chars().count() > WIDTH {
            let _ = writeln!(out, "{line}");
            line.clear();
        }
        line.push_str(if line.is_empty() { "export " } else { " " });
        line.push_str(assignment);
    }
    if !line.is_empty() {
        let _ = writeln!(out, "{line}");
    }
}

/// `srun` with its options.
fn srun(parts: &Parts<'_>, direct: &Direct<'_>) -> Vec<String> {
    let role = direct.role;
    let mut words = vec!["srun".to_owned(), format!("--job-name={}", role.name)];
    // The step has the rest of the request by itself, but not this before Slurm 23.11.
    words.extend(header::cpus(role).map(|cpus| format!("--cpus-per-task={cpus}")));
    if run::is_mpi_step(parts.job, role) {
        words.push("--mpi=pmix".to_owned());
    }
    if role.instances > 1 {
        words.push("--kill-on-bad-exit=1".to_owned());
    }
    if direct.container == SlurmContainer::Pyxis {
        words.extend(step::pyxis(parts, role, &Places::DIRECT));
    }
    words.push("\"$@\"".to_owned());
    words
}

/// The command in its container.
fn run_in(parts: &Parts<'_>, direct: &Direct<'_>) -> String {
    let words = &direct.command.words;
    if direct.container == SlurmContainer::Apptainer {
        return format!("{} {words}", run::apptainer(parts, direct.role, &Places::DIRECT))
            .trim_end()
            .to_owned();
    }
    words.clone()
}
