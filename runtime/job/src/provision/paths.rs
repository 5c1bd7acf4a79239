//! Volumes that are directories of this host: data must exist, outputs are created.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use indexmap::{IndexMap, IndexSet};
use jobc_schema::plan::{JobPlan, VolumeKind};
use rustix::fs::{Access, AtFlags, CWD};

use super::fields::{at_field, field_of, host_path, mounted_volumes, path_of_host};
use super::job::{Job, Progress};
use super::roots::RoleRoot;
use jobc_sys::error::{AtPath as _, Result, describe_io, file_error};

/// Checks that the data which roles mount from this host exists; `base` is the base of relative paths.
pub(super) fn check_data(plan: &JobPlan, base: &Path, on_progress: &mut dyn FnMut(Progress)) -> Result<()> {
    for name in mounted_volumes(plan) {
        let data = plan.volumes.get(name).is_some_and(|volume| volume.kind == VolumeKind::Data);
        let Some(path) = path_of_host(plan, base, name).filter(|_| data) else { continue };
        let field = field_of(plan, name);
        if let Err(error) = std::fs::metadata(&path) {
            let missing = error.kind() == std::io::ErrorKind::NotFound;
            let why = if missing { "no such file or directory".to_owned() } else { describe_io(&error) };
            return Err(at_field(&field, &format!("cannot mount `{}`: {why}", path.display())).help(
                if missing {
                    format!(
                        "put the data there, or name another directory; relative paths start at `{}`",
                        base.display()
                    )
                } else {
                    "name a directory that you can access".to_owned()
                },
            ));
        }
        let writes = plan.roles.iter().flat_map(|role| &role.mounts);
        let writes = writes.clone().any(|mount| mount.volume == name && mount.writable);
        check_access(&path, writes, &field)?;
        on_progress(Progress::DataReady { volume: name.to_owned(), path });
    }
    Ok(())
}

/// Creates the missing directories of outputs, for the users who write to them.
pub(super) fn create_outputs(
    job: &Job<'_>,
    roles: &IndexMap<String, RoleRoot>,
    on_progress: &mut dyn FnMut(Progress),
    notes: &mut Vec<String>,
) -> Result<()> {
    for name in mounted_volumes(job.plan) {
        let output = job.plan.volumes.get(name).is_some_and(|volume| volume.kind == VolumeKind::Output);
        let Some(path) = host_path(job, name).filter(|_| output) else { continue };
        let field = field_of(job.plan, name);
        let writers = writers(job, roles, name);
        if path.exists() {
            check_access(&path, !writers.is_empty(), &field)?;
        } else {
            create_directories(&path)
                .map_err(|error| file_error("create the directory", &path, &error).at_field(&field))?;
            set_owner(&path, &writers, name, notes)?;
        }
        on_progress(Progress::DataReady { volume: name.to_owned(), path });
    }
    Ok(())
}

/// Creates a directory and its missing parents, readable for others regardless of the umask, which is strict in a
/// supervisor.
pub(super) fn create_directories(path: &Path) -> std::io::Result<()> {
    if let Some(parent) = path.parent().filter(|parent| !parent.exists()) {
        create_directories(parent)?;
    }
    match std::fs::create_dir(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(error),
        Ok(()) => std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)),
    }
}

/// The users who write to an output, by the ids of the containers.
pub(super) fn writers(job: &Job<'_>, roles: &IndexMap<String, RoleRoot>, name: &str) -> IndexSet<(u32, u32)> {
    let writing = job
        .plan
        .roles
        .iter()
        .filter(|role| role.mounts.iter().any(|mount| mount.volume == name && mount.writable));
    writing.filter_map(|role| Some(roles.get(&role.name)?.ids())).collect()
}

/// Gives a new directory to its only writer; if there are several of different users, to all.
///
/// Only root's numbers are the containers' own: without root, only the container's root writes.
pub(super) fn set_owner(
    path: &Path,
    writers: &IndexSet<(u32, u32)>,
    name: &str,
    notes: &mut Vec<String>,
) -> Result<()> {
    if writers.iter().all(|(uid, _)| *uid == 0) {
        return Ok(());
    }
    if rustix::process::geteuid().is_root() && writers.len() == 1 {
        let (uid, gid) = writers[0];
        return std::os::unix::fs::chown(path, Some(uid), Some(gid)).at_path("change the owner of", path);
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o1777))
        .at_path("set the permissions of", path)?;
    let users = match writers.first().filter(|_| writers.len() == 1) {
        Some((uid, _)) => format!("user {uid} of the containers writes to it"),
        None => "several container users write to it".to_owned(),
    };
    notes.push(format!("`{name}` is world-writable, because {users}"));
    Ok(())
}

fn check_access(path: &Path, writes: bool, field: &str) -> Result<()> {
    let wanted = if writes { Access::READ_OK | Access::WRITE_OK } else { Access::READ_OK };
    rustix::fs::accessat(CWD, path, wanted, AtFlags::EACCESS).map_err(|errno| {
        let what = if writes { "write to" } else { "read" };
        at_field(field, &format!("cannot {what} `{}`: {}", path.display(), jobc_sys::error::describe(errno)))
            .help(if writes && errno == rustix::io::Errno::ROFS {
                "it is mounted read-only on this host; name another directory"
            } else {
                "change its permissions, or name another directory"
            })
    })
}
