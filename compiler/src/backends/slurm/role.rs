//! The script of a role: its environment, then its command.

use std::fmt::Write as _;

use jobc_schema::plan::{EnvPlan, FileContent, FilePlan, GpuAmount, RolePlan, Text};
use jobc_schema::role::RetryScope;
use jobc_schema::shell::quote;
use jobc_schema::target::SlurmContainer;

use crate::backend::{Content, File, FilePart, Origin, PartSource};

use super::parts::Parts;
use super::shell::{Filling, exit_codes};
use super::{bundle, code, header, node, run, volumes};

/// Functions for lists of addresses.
pub(super) const LIST: &str = include_str!("list.sh");
const COMMON: &str = include_str!("task.sh");

/// Where files of jobc are in a container.
const ETC: &str = "/etc/jobc/";

/// The script of a role; `None` if Slurm itself starts the containers.
pub(super) fn script(parts: &Parts<'_>, role: &RolePlan) -> Option<File> {
    if parts.container() == SlurmContainer::Oci {
        return None;
    }
    let text = Script { parts, role, filling: Filling { job: parts.job, ports: &parts.ports, role } }.text();
    let mut file = File::new(format!("roles/{}.sh", role.name), Content::Text(text));
    file.mode = 0o755;
    file.origins.push(Origin { part: FilePart::Line(1), from: PartSource::Spec(role.at()) });
    Some(file)
}

/// The lines that make what a command of a role finds: files, variables, limits, directories, or its bundle.
pub(super) fn surroundings(parts: &Parts<'_>, role: &RolePlan, out: &mut String) {
    let script = Script { parts, role, filling: Filling { job: parts.job, ports: &parts.ports, role } };
    if parts.container() == SlurmContainer::Jobc {
        script.bundle(false, out);
    } else {
        script.surroundings(out);
    }
}

struct Script<'a> {
    parts: &'a Parts<'a>,
    role: &'a RolePlan,
    filling: Filling<'a>,
}

impl Script<'_> {
    fn text(&self) -> String {
        let (job, role) = (self.parts.job, self.role);
        let mut out = format!(
            "#!/bin/bash\n# Role {} of job {}: one task of Slurm for each instance, started by the batch script.\n. \"$1\"\n\n",
            role.name, job.name
        );
        out.push_str(LIST);
        out.push('\n');
        out.push_str(COMMON);
        let _ = writeln!(
            out,
            "\n# ---- This role ---------------------------------------------------------------------------------\n"
        );
        self.facts(&mut out);
        let _ = writeln!(out, "jobc_begin {} $#", role.name);
        if self.parts.container() == SlurmContainer::Jobc {
            self.bundle(true, &mut out);
        } else {
            self.surroundings(&mut out);
        }
        self.probe(&mut out);
        if run::reaches_others(job, role) {
            self.launcher(&mut out);
        }
        if run::waits_for_program(role) && self.parts.container() != SlurmContainer::Jobc {
            out.push_str(run::SET_TRAP);
        }
        let _ = writeln!(out, "jobc_task {}", run::command_line(self.parts, role, None));
        out
    }

    /// The variables that the common part reads.
    fn facts(&self, out: &mut String) {
        let role = self.role;
        let task = role.retry.scope == RetryScope::Task;
        let number =
            |number: Option<u64>| number.map_or_else(|| "''".to_owned(), |number| number.to_string());
        let _ = writeln!(
            out,
            "jobc_timeout={} jobc_grace={} jobc_retries={} jobc_backoff={} jobc_codes='{}'",
            number(role.timeout_seconds),
            role.grace_period_seconds,
            if task { role.retry.max } else { 0 },
            if task { role.retry.backoff_seconds.unwrap_or(0) } else { 0 },
            if task { exit_codes(&role.retry) } else { String::new() },
        );
        let _ = writeln!(
            out,
            "jobc_min_succeeded={} jobc_min_failed={}",
            number(role.completion.min_succeeded.map(u64::from)),
            number(role.completion.min_failed.map(u64::from))
        );
    }

    /// The copy of the bundle that has the addresses of this job, and its root.
    fn bundle(&self, finds_program: bool, out: &mut String) {
        self.made_directories(out);
        if finds_program {
            out.push_str(bundle::PROGRAM);
        }
        out.push_str(bundle::FILL);
        let _ = writeln!(out, "jobc_fill {} || exit 125", self.role.name);
        if let Some(line) = run::find_root(self.parts, self.role) {
            out.push_str(bundle::IMAGE);
            let _ = writeln!(out, "{line}");
        }
    }

    /// Files, variables and limits.
    fn surroundings(&self, out: &mut String) {
        self.made_directories(out);
        for file in run::files(self.role) {
            self.file(file, out);
        }
        let role = self.role;
        if role.resources.gpu.as_ref().is_some_and(|gpu| gpu.amount() == GpuAmount::Hidden) {
            out.push_str(
                "export CUDA_VISIBLE_DEVICES='' NVIDIA_VISIBLE_DEVICES=void ROCR_VISIBLE_DEVICES=''\n",
            );
        }
        for (name, value) in &role.provided_env {
            if !role.env.contains_key(name) {
                export(name, &self.provided(value), out);
            }
        }
        for (name, value) in &role.env {
            match value {
                EnvPlan::Text(text) => export(name, &self.filling.word(text), out),
                EnvPlan::Secret { secret } => {
                    let _ = writeln!(out, "jobc_secret {name} {secret}");
                }
            }
        }
        for limit in limits(role) {
            let _ = writeln!(out, "{limit}");
        }
        if self.parts.container() == SlurmContainer::None {
            let directory =
                code::workdir(role, code::DIRECTORY).or_else(|| role.workdir.as_deref().map(quote));
            let directory = directory.or_else(|| self.callers_directory());
            if let Some(directory) = directory {
                let _ = writeln!(out, "cd {directory} || exit 125");
            }
        }
    }

    /// The directory in which the job was submitted, if the image is `host`.
    fn callers_directory(&self) -> Option<String> {
        use jobc_schema::plan::ImageSource;
        match self.parts.job.image_of(self.role)?.source {
            ImageSource::Host { cwd: true, .. } => Some("\"$SLURM_SUBMIT_DIR\"".to_owned()),
            _ => None,
        }
    }

    fn made_directories(&self, out: &mut String) {
        let of_instance: Vec<_> = volumes::instance_volumes(self.parts, &self.role.mounts).collect();
        let is_inside = self.parts.container() == SlurmContainer::Pyxis;
        if !of_instance.is_empty() && !is_inside {
            // `jobc_ended` removes it.
            out.push_str("jobc_scratch=${TMPDIR:-/tmp}/jobc-$SLURM_JOB_ID-$jobc_role-$jobc_index\n");
        }
        for bind in volumes::mounts(self.parts, self.role).iter().filter(|bind| bind.is_created) {
            let inside = volumes::is_inside(self.parts, bind.mount).then(|| quote(&bind.mount.path));
            let _ = writeln!(out, "mkdir -p {} || exit 125", inside.as_ref().unwrap_or(&bind.source));
        }
        for mount in of_instance.iter().filter(|_| self.parts.container() == SlurmContainer::Jobc) {
            // Where the bundle has them.
            let _ = writeln!(
                out,
                "mkdir -p \"$jobc_bundles/volumes/{0}\" && ln -sfn \"$jobc_scratch/{0}\" \"$jobc_bundles/volumes/{0}/$jobc_role-$jobc_index\" || exit 125",
                mount.volume
            );
        }
    }

    /// A file at its place in the container; on the node itself, and for Apptainer to mount, below the job's own.
    fn file(&self, file: &FilePlan, out: &mut String) {
        let inside = self.parts.container() == SlurmContainer::Pyxis;
        let path = quote(&file.path);
        let path = if inside { path } else { format!("\"$jobc_etc\"{path}") };
        let _ = writeln!(out, "mkdir -p \"$(dirname {path})\" || exit 125");
        match &file.content {
            FileContent::Secret { secret } => {
                let _ = writeln!(out, "(umask 077; cat \"$jobc_secrets/{secret}\" >{path}) || exit 125");
            }
            FileContent::Text(text) => {
                let _ = writeln!(out, "printf %s {} >{path} || exit 125", self.filling.word(text));
            }
        }
        let _ = writeln!(out, "chmod {:04o} {path}", file.mode);
    }

    /// A provided value; paths of jobc's own files are where those are.
    fn provided(&self, value: &Text) -> String {
        match value.as_literal() {
            Some(path) if path.starts_with(ETC) && self.parts.container() == SlurmContainer::None => {
                format!("\"$jobc_etc\"{}", quote(path))
            }
            _ => self.filling.word(value),
        }
    }

    fn probe(&self, out: &mut String) {
        let Some(ready) = &self.role.ready else { return };
        let command = node::probe_command(&self.filling, &ready.probe);
        let _ = writeln!(
            out,
            "jobc_probe {} {} {} {} {command} &",
            ready.delay_seconds, ready.every_seconds, ready.try_timeout_seconds, ready.timeout_seconds
        );
    }

    /// The setup for a program that starts processes on other nodes, and the command requested by another one.
    fn launcher(&self, out: &mut String) {
        for (name, value) in run::launcher_environment(self.parts.job) {
            export(name, value, out);
        }
        out.push_str("export PATH=\"$jobc_directory/bin:$PATH\" jobc_addresses=\"$1\"\n");
        // Launchers with Slurm support would start processes as steps, and wait for nodes that this step holds.
        out.push_str("for name in \"${!SLURM_@}\"; do [ \"$name\" = SLURM_CONF ] || unset \"$name\"; done\n");
        out.push_str("[ $# -lt 2 ] || exec bash -c \"$2\"\n");
    }
}

/// Sets a variable for the command; `export` itself would hide a failure of the expansion.
fn export(name: &str, value: &str, out: &mut String) {
    let _ = writeln!(out, "export {name}={value}");
}

/// The lines that set a role's limits of setrlimit(2).
pub(super) fn limits(role: &RolePlan) -> Vec<String> {
    let line = |(name, limit): (&String, &Option<u64>)| {
        let flag = limit_flag(name)?;
        let limit = limit.map_or_else(|| "unlimited".to_owned(), |limit| limit_units(name, limit));
        Some(format!("ulimit -{flag} {limit} || exit 125"))
    };
    role.resources.ulimits.iter().filter_map(line).collect()
}

/// The option of `ulimit` for a limit.
fn limit_flag(name: &str) -> Option<char> {
    Some(match name {
        "core" => 'c',
        "data" => 'd',
        "nice" => 'e',
        "fsize" => 'f',
        "sigpending" => 'i',
        "memlock" => 'l',
        "rss" => 'm',
        "nofile" => 'n',
        "msgqueue" => 'q',
        "rtprio" => 'r',
        "stack" => 's',
        "cpu" => 't',
        "nproc" => 'u',
        "as" => 'v',
        "locks" => 'x',
        "rttime" => 'R',
        _ => return None,
    })
}

/// A limit in the units of `ulimit`: KiB for sizes.
fn limit_units(name: &str, limit: u64) -> String {
    if header::is_size(name) { limit.div_ceil(1024) } else { limit }.to_string()
}
