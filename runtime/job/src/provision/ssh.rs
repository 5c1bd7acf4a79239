//! Keys for ssh between the tasks of a job: one pair a job, made by ssh-keygen, in memory and gone with the job.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use jobc_schema::plan::SshPlan;

use super::job::Job;
use super::program;
use jobc_container::secret_directory::SecretDirectory;
use jobc_sys::error::{AtPath as _, Error, Kind, Result};
use jobc_sys::id_map::IdMaps;

/// Creates the directory that tasks see as /etc/jobc/ssh; `None` if the job does not use ssh.
///
/// # Errors
///
/// No sshd can serve this user's tasks, or ssh-keygen fails.
pub(super) fn keys(job: &Job<'_>, place: &SecretDirectory, stopped: &AtomicBool) -> Result<Option<PathBuf>> {
    let Some(ssh) = job.plan.distributed.as_ref().and_then(|plan| plan.ssh.as_ref()) else { return Ok(None) };
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    check_ids(&IdMaps::rootless(uid.as_raw(), gid.as_raw())?)?;
    let directory = place.create_directory("ssh")?;
    if !directory.join("authorized_keys").exists() {
        generate_keys(ssh, &directory, job, stopped)?;
    }
    Ok(Some(directory))
}

/// Reports that the tasks have one user and group only: sshd sets the groups of who logs in, which the kernel denies.
fn check_ids(maps: &IdMaps) -> Result<()> {
    if !maps.groups_denied() {
        return Ok(());
    }
    let message = "the instances cannot start each other by ssh: sshd needs more than one user and group, and this user has one of each";
    Err(Error::new(Kind::Unsupported, message)
        .help("let root grant ids in /etc/subuid and /etc/subgid; `jobc doctor` prints the command"))
}

fn generate_keys(ssh: &SshPlan, directory: &Path, job: &Job<'_>, stopped: &AtomicBool) -> Result<()> {
    let key = directory.join("id_ed25519");
    // One of a run that was broken off, which ssh-keygen would ask about.
    let _ = std::fs::remove_file(&key);
    let mut command = Command::new("ssh-keygen");
    command
        .args(["-q", "-t", "ed25519", "-N", ""])
        .arg("-C")
        .arg(job.directory.id.to_string())
        .arg("-f")
        .arg(&key);
    let ended = program::run(&mut command, b"", stopped, &mut || {})?;
    if !ended.status.success() {
        let message = format!("ssh-keygen could not create the SSH keys of the tasks: {}", ended.stderr);
        return Err(Error::new(Kind::System, message));
    }
    let public = directory.join("id_ed25519.pub");
    let written = std::fs::read(&public)
        .and_then(|key| std::fs::write(directory.join("authorized_keys"), key))
        .and_then(|()| std::fs::write(directory.join("config"), client_config(ssh)))
        .and_then(|()| {
            // Tasks of any user copy them; on the host only this user can reach this directory.
            for name in ["id_ed25519", "id_ed25519.pub", "authorized_keys", "config"] {
                std::fs::set_permissions(directory.join(name), std::fs::Permissions::from_mode(0o444))?;
            }
            std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o755))
        });
    written.at_path("create keys in", directory)
}

/// The client's settings. Each task creates new host keys, so they are not checked. Of a number the client takes the name
/// in the image, that of its own user.
fn client_config(ssh: &SshPlan) -> String {
    let is_number = ssh.user.parse::<u32>().is_ok();
    let user = if is_number { String::new() } else { format!("  User {}\n", ssh.user) };
    format!(
        "Host *\n  Port {}\n{user}  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n",
        ssh.port
    )
}
