//! What the script of a role makes before its command: files, variables, limits, directories, or its bundle.

use std::fmt::Write as _;

use jobc_schema::plan::{EnvPlan, FileContent, FilePlan, GpuAmount, RolePlan, Text};
use jobc_schema::preemption::{ATTEMPT, RESUME};
use jobc_schema::shell::quote;
use jobc_schema::target::SlurmContainer;

use super::parts::Parts;
use super::shell::Filling;
use super::{bundle, code, header, run, volumes};

/// Functions for lists of addresses.
pub(super) const LIST: &str = include_str!("list.sh");

/// Where files of jobc are in a container.
const ETC: &str = "/etc/jobc/";

/// The lines that make what a command of a role finds: files, variables, limits, directories, or its bundle.
pub(super) fn surroundings(parts: &Parts<'_>, role: &RolePlan, out: &mut String) {
    let script = Script { parts, role, filling: Filling { job: parts.job, ports: &parts.ports, role } };
    if matches!(parts.container(), SlurmContainer::Jobc | SlurmContainer::Oci) {
        script.bundle(out);
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
    /// The copy of the bundle that has the addresses of this job, and its root.
    fn bundle(&self, out: &mut String) {
        self.made_directories(out);
        out.push_str(bundle::FILL);
        let _ = writeln!(out, "jobc_fill {} || exit 125", self.role.name);
        if self.parts.container() == SlurmContainer::Jobc
            && let Some(line) = run::find_root(self.parts, self.role)
        {
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
            // The supervisor counts attempts.
            if !role.env.contains_key(name) && ![ATTEMPT, RESUME].contains(&name.as_str()) {
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
            // The agent of the task removes it.
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
