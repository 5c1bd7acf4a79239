//! Secrets: references to them, and the script that makes them where the job is started.
//!
//! No value ever enters an artifact or a command line: the script writes values to a private directory that it removes,
//! and `kubectl` reads them from there.

use std::fmt::Write as _;

use camino::Utf8Path;
use jobc_schema::plan::{EnvPlan, FileContent, JobPlan, SecretPlan};

use crate::backend::{Content, File};
use crate::openpai::has_ssh;

use super::settings::settings;
use jobc_schema::shell::quote;

/// The type of a Secret with any keys.
const OPAQUE: &str = "Opaque";
/// The type of a Secret with registry credentials.
const DOCKER_CONFIG: &str = "kubernetes.io/dockerconfigjson";

/// The Secret with the job's secrets, one key each.
pub(super) fn job_secret(job: &JobPlan) -> String {
    format!("{}-secrets", job.name)
}

/// The Secret with the keys of the job's ssh.
pub(super) fn ssh_secret(job: &JobPlan) -> String {
    format!("{}-ssh", job.name)
}

/// The Secrets with the credentials for the job's registries, in their order.
pub(super) fn registry_secrets(job: &JobPlan) -> impl Iterator<Item = String> + '_ {
    (0..job.registries.len()).map(|i| format!("{}-registry-{i}", job.name))
}

/// The secrets that roles use and that the user who starts the job provides.
fn user_secrets(job: &JobPlan) -> impl Iterator<Item = (&String, &SecretPlan)> {
    let used: std::collections::BTreeSet<&str> = job
        .roles
        .iter()
        .flat_map(|role| {
            let env = role.env.values().filter_map(|value| match value {
                EnvPlan::Secret { secret } => Some(secret.as_str()),
                EnvPlan::Text(_) => None,
            });
            let files = role.files.iter().filter_map(|file| match &file.content {
                FileContent::Secret { secret } => Some(secret.as_str()),
                FileContent::Text(_) => None,
            });
            env.chain(files)
        })
        .collect();
    job.secrets.iter().filter(move |(name, secret)| {
        used.contains(name.as_str()) && !matches!(secret, SecretPlan::Store { .. })
    })
}

/// `create-secrets.sh`, if the job needs a Secret that is not created elsewhere.
pub(super) fn script(job: &JobPlan, to_job: &Utf8Path) -> Option<File> {
    let mut steps = String::new();
    let names: Vec<_> = user_secrets(job).collect();
    if !names.is_empty() {
        steps.push_str("\nmkdir \"$dir/secrets\"\n");
        for (name, secret) in names {
            steps.push_str(&fetch(secret, &format!("$dir/secrets/{name}")));
        }
        steps.push_str(&create(&job_secret(job), OPAQUE, "\"$dir/secrets\""));
    }
    for (i, (host, registry)) in job.registries.iter().enumerate() {
        let Some(password) = job.secrets.get(&registry.password_secret) else { continue };
        let _ = writeln!(steps, "\nmkdir \"$dir/registry-{i}\"");
        steps.push_str(&fetch(password, &format!("$dir/password-{i}")));
        let user = quote(&registry.username);
        let host = quote(host);
        let _ = write!(
            steps,
            "auth=$(printf '%s:%s' {user} \"$(cat \"$dir/password-{i}\")\" | base64 | tr -d '\\n')\n\
             printf '{{\"auths\":{{\"%s\":{{\"auth\":\"%s\"}}}}}}' {host} \"$auth\" >\"$dir/registry-{i}/.dockerconfigjson\"\n"
        );
        let name = format!("{}-registry-{i}", job.name);
        steps.push_str(&create(&name, DOCKER_CONFIG, &format!("\"$dir/registry-{i}\"")));
    }
    if job.distributed.as_ref().is_some_and(|d| d.ssh.is_some()) || job.roles.iter().any(has_ssh) {
        steps.push_str(
            "\nmkdir \"$dir/ssh\"\n\
             ssh-keygen -q -t ed25519 -N '' -C jobc -f \"$dir/ssh/id_ed25519\"\n\
             mv \"$dir/ssh/id_ed25519.pub\" \"$dir/ssh/authorized_keys\"\n",
        );
        steps.push_str(&create(&ssh_secret(job), OPAQUE, "\"$dir/ssh\""));
    }
    if steps.is_empty() {
        return None;
    }
    let namespace = settings(job).namespace.as_ref().map_or(String::new(), |name| format!(" -n {name}"));
    let to_job = quote(Utf8Path::new("..").join(to_job).as_str());
    let text = format!(
        "#!/bin/sh\n\
         # Makes the Secrets that job {name} reads; run it once before `kubectl apply -f .`.\n\
         # Values come from the environment and the files of whoever runs it, and never stand on a command line.\n\
         # Arguments are passed on to kubectl, such as --context NAME.\n\
         set -eu\n\
         cd \"$(dirname \"$0\")\"\n\
         job_dir={to_job}\n\
         umask 077\n\
         dir=$(mktemp -d)\n\
         trap 'rm -rf \"$dir\"' EXIT\n\
         trap 'exit 1' HUP INT TERM\n\
         \n\
         # kubectl reads each file of a directory as one key.\n\
         secret() {{\n\
         \x20 name=$1 files=$2 type=$3\n\
         \x20 shift 3\n\
         \x20 kubectl \"$@\"{namespace} create secret generic \"$name\" --type=\"$type\" --from-file=\"$files\" --dry-run=client -o yaml >\"$dir/$name.yaml\"\n\
         \x20 kubectl \"$@\"{namespace} apply -f \"$dir/$name.yaml\"\n\
         }}\n\
         {steps}",
        name = job.name,
    );
    Some(File { mode: 0o755, ..File::new("create-secrets.sh", Content::Text(text)) })
}

/// Puts a secret's value into a file.
fn fetch(secret: &SecretPlan, to: &str) -> String {
    match secret {
        SecretPlan::Env(name) => {
            format!("printf '%s' \"${{{name}:?is not set; it holds a secret of the job}}\" >\"{to}\"\n")
        }
        SecretPlan::File(path) => {
            let from = if let Some(rest) = path.strip_prefix("~/") {
                format!("\"$HOME\"/{}", quote(rest))
            } else if path.starts_with('/') {
                quote(path)
            } else {
                format!("\"$job_dir\"/{}", quote(path))
            };
            format!("cat {from} >\"{to}\"\n")
        }
        // `support` refuses what would need a value out of another store.
        SecretPlan::Store { .. } => String::new(),
    }
}

fn create(name: &str, kind: &str, directory: &str) -> String {
    format!("secret {name} {directory} {kind} \"$@\"\n")
}
