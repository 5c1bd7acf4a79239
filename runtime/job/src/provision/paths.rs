//! Volumes that are folders of this machine: data must be there, outputs are made.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use indexmap::{IndexMap, IndexSet};
use jobc_schema::plan::VolumeKind;
use rustix::fs::{Access, AtFlags, CWD};

use super::fields::{at_field, field_of, machine_path, mounted};
use super::job::{Job, Progress};
use super::roots::RoleRoot;
use jobc_sys::error::{Error, Result, because, machine};

/// Sees that the data which roles mount from this machine is there.
pub(super) fn see_data(job: &Job<'_>, told: &mut dyn FnMut(Progress)) -> Result<()> {
    for name in mounted(job.plan) {
        let data = job.plan.volumes.get(name).is_some_and(|volume| volume.kind == VolumeKind::Data);
        let Some(path) = machine_path(job, name).filter(|_| data) else { continue };
        let field = field_of(job.plan, name);
        if let Err(error) = std::fs::metadata(&path) {
            let missing = error.kind() == std::io::ErrorKind::NotFound;
            let why = if missing { "it is not there".to_owned() } else { because(&error) };
            return Err(at_field(&field, &format!("cannot mount `{}`: {why}", path.display())).help(
                if missing {
                    format!(
                        "put the data there, or name another folder; relative paths begin at `{}`",
                        job.submission.folder.display()
                    )
                } else {
                    "name a folder that you may enter".to_owned()
                },
            ));
        }
        let writes = job.plan.roles.iter().flat_map(|role| &role.mounts);
        let writes = writes.clone().any(|mount| mount.volume == name && mount.writable);
        see_access(&path, writes, &field)?;
        told(Progress::DataReady { volume: name.to_owned(), path });
    }
    Ok(())
}

/// Makes the folders of outputs that are not there, for those who write to them.
pub(super) fn make_outputs(
    job: &Job<'_>,
    roles: &IndexMap<String, RoleRoot>,
    told: &mut dyn FnMut(Progress),
    notes: &mut Vec<String>,
) -> Result<()> {
    for name in mounted(job.plan) {
        let output = job.plan.volumes.get(name).is_some_and(|volume| volume.kind == VolumeKind::Output);
        let Some(path) = machine_path(job, name).filter(|_| output) else { continue };
        let field = field_of(job.plan, name);
        let writers = writers(job, roles, name);
        if path.exists() {
            see_access(&path, !writers.is_empty(), &field)?;
        } else {
            make_open(&path).map_err(|error| {
                let Error { message, help, .. } = machine("make the folder", &path, &error);
                Error { help, ..at_field(&field, &message) }
            })?;
            hand_over(&path, &writers, name, notes)?;
        }
        told(Progress::DataReady { volume: name.to_owned(), path });
    }
    Ok(())
}

/// Makes a folder, and those above it that are missing, for others to read whatever the umask: a supervisor's is strict.
pub(super) fn make_open(path: &Path) -> std::io::Result<()> {
    if let Some(parent) = path.parent().filter(|parent| !parent.exists()) {
        make_open(parent)?;
    }
    match std::fs::create_dir(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(error),
        Ok(()) => std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)),
    }
}

/// Who writes to an output, by the numbers of the containers.
fn writers(job: &Job<'_>, roles: &IndexMap<String, RoleRoot>, name: &str) -> IndexSet<(u32, u32)> {
    let writing = job
        .plan
        .roles
        .iter()
        .filter(|role| role.mounts.iter().any(|mount| mount.volume == name && mount.writable));
    writing.filter_map(|role| Some(roles.get(&role.name)?.ids())).collect()
}

/// Gives a folder that was just made to its only writer; where there are several of different users, to all.
///
/// Only root's numbers are the containers' own: without root, only the container's root writes.
fn hand_over(path: &Path, writers: &IndexSet<(u32, u32)>, name: &str, notes: &mut Vec<String>) -> Result<()> {
    if writers.iter().all(|(uid, _)| *uid == 0) {
        return Ok(());
    }
    if rustix::process::geteuid().is_root() && writers.len() == 1 {
        let (uid, gid) = writers[0];
        return std::os::unix::fs::chown(path, Some(uid), Some(gid))
            .map_err(|error| machine("give away", path, &error));
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o1777))
        .map_err(|error| machine("set the permissions of", path, &error))?;
    notes.push(format!(
        "everybody may write to the output `{name}`, since its writers are several users of the containers"
    ));
    Ok(())
}

fn see_access(path: &Path, writes: bool, field: &str) -> Result<()> {
    let wanted = if writes { Access::READ_OK | Access::WRITE_OK } else { Access::READ_OK };
    rustix::fs::accessat(CWD, path, wanted, AtFlags::EACCESS).map_err(|errno| {
        let what = if writes { "write to" } else { "read" };
        at_field(field, &format!("cannot {what} `{}`: {}", path.display(), jobc_sys::error::describe(errno)))
            .help(if writes && errno == rustix::io::Errno::ROFS {
                "it is mounted read-only on this machine; name another folder"
            } else {
                "change its permissions, or name another folder"
            })
    })
}
