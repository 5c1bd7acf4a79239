//! Directories in volumes that roles mount instead of the whole volume.
//!
//! A task that writes to a volume could put a symbolic link where another task's directory is, and so have any place of
//! the host mounted. No step below the volume may therefore be a link: not when the directories are created, and not when
//! the container mounts one ([`Bundle::linkless`]).

use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::PathBuf;

use indexmap::{IndexMap, IndexSet};
use jobc_schema::plan::{MountPlan, RolePlan, VolumeKind};
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, ResolveFlags, Stat, Uid};
use rustix::io::Errno;

use jobc_container::bundle::Bundle;

use super::fields::{at_field, volume_path};
use super::job::Job;
use super::roots::RoleRoot;
use jobc_sys::error::{Error, Result, describe, errno_of};

/// A directory in a volume that a role mounts.
#[derive(Clone, Debug)]
pub(crate) struct Subpath {
    /// The field of the job file, for errors.
    field: String,
    /// Where the role mounts it.
    destination: PathBuf,
    /// The volume on this host.
    volume: PathBuf,
    /// The path in it.
    path: String,
    writable: bool,
}

/// The directories that each role mounts, by role.
pub(super) fn of_roles(job: &Job<'_>) -> IndexMap<String, Vec<Subpath>> {
    let of_role =
        |role: &RolePlan| role.mounts.iter().filter_map(|mount| of_mount(job, role, mount)).collect();
    job.plan.roles.iter().map(|role| (role.name.clone(), of_role(role))).collect()
}

fn of_mount(job: &Job<'_>, role: &RolePlan, mount: &MountPlan) -> Option<Subpath> {
    let path = mount.subpath.clone()?;
    let output = job.plan.volumes.get(&mount.volume).is_some_and(|volume| volume.kind == VolumeKind::Output);
    let kind = if output { "outputs" } else { "data" };
    Some(Subpath {
        field: format!("roles.{}.{kind}.{}.subpath", role.declared(), mount.volume),
        destination: PathBuf::from(&mount.path),
        volume: volume_path(job.directory, job.plan, &job.submission.directory, &mount.volume),
        path,
        writable: mount.writable,
    })
}

/// Creates the missing directories of roles that write to them; the others must exist.
pub(super) fn create(
    subpaths: &IndexMap<String, Vec<Subpath>>,
    roles: &IndexMap<String, RoleRoot>,
) -> Result<()> {
    for (role, subpath) in subpaths.iter().flat_map(|(role, all)| all.iter().map(move |one| (role, one))) {
        let users: IndexSet<(u32, u32)> = roles.get(role).map(RoleRoot::ids).into_iter().collect();
        if subpath.writable {
            subpath.create(&users)?;
        }
        subpath.open()?;
    }
    Ok(())
}

/// Makes the mounts of a task bind these directories, without following links.
pub(crate) fn mount_linkless(subpaths: &[Subpath], bundle: &mut Bundle) -> Result<()> {
    for subpath in subpaths {
        // Links are reported here; one that is created later fails the mount.
        subpath.open()?;
        // Links in the path of the volume itself are the user's.
        let volume = std::fs::canonicalize(&subpath.volume);
        let volume = volume.map_err(|error| subpath.error("open", errno_of(&error)))?;
        for mount in bundle.config.spec.mounts_mut().iter_mut().flatten() {
            if *mount.destination() == subpath.destination {
                mount.set_source(Some(volume.join(&subpath.path)));
                bundle.linkless.insert(subpath.destination.clone());
            }
        }
    }
    Ok(())
}

impl Subpath {
    /// Creates what is missing of the path, for the users of the role.
    fn create(&self, users: &IndexSet<(u32, u32)>) -> Result<()> {
        let mut parent = self.open_volume()?;
        for step in self.path.split('/') {
            match rustix::fs::mkdirat(&parent, step, Mode::RWXU) {
                Ok(()) => {
                    // Regardless of the umask, which is strict in a supervisor.
                    let directory = self.enter(&parent, step)?;
                    self.set_owner(&directory, users)?;
                    parent = directory;
                }
                Err(Errno::EXIST) => parent = self.enter(&parent, step)?,
                Err(errno) => return Err(self.error("create", errno)),
            }
        }
        Ok(())
    }

    /// Opens the directory.
    fn open(&self) -> Result<OwnedFd> {
        let volume = self.open_volume()?;
        self.path.split('/').try_fold(volume, |parent, step| self.enter(&parent, step))
    }

    fn open_volume(&self) -> Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::open(&self.volume, flags, Mode::empty()).map_err(|errno| self.error("open", errno))
    }

    fn enter(&self, parent: impl AsFd, step: &str) -> Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        rustix::fs::openat2(&parent, step, flags, Mode::empty(), resolve).map_err(|errno| {
            let status = rustix::fs::statat(&parent, step, AtFlags::SYMLINK_NOFOLLOW);
            let is_link = |status: Stat| FileType::from_raw_mode(status.st_mode) == FileType::Symlink;
            if status.is_ok_and(is_link) {
                let what = format!("`{}` in `{}` is a symbolic link", self.path, self.volume.display());
                return at_field(&self.field, &what).help(
                    "put a directory there; a task could have any place of the host mounted by a link",
                );
            }
            self.error("open", errno)
        })
    }

    /// Gives a new directory to the users of the role, as outputs are.
    fn set_owner(&self, directory: &OwnedFd, users: &IndexSet<(u32, u32)>) -> Result<()> {
        let path = format!("/proc/self/fd/{}", directory.as_raw_fd());
        let is_root = rustix::process::geteuid().is_root();
        let (owner, mode) = match users.first() {
            Some((uid, gid)) if *uid != 0 && is_root => (Some((*uid, *gid)), 0o755),
            // Without root, only the container's root is this user.
            Some((uid, _)) if *uid != 0 => (None, 0o1777),
            _ => (None, 0o755),
        };
        rustix::fs::chmod(&path, Mode::from_raw_mode(mode))
            .map_err(|errno| self.error("set the permissions of", errno))?;
        let Some((uid, gid)) = owner else { return Ok(()) };
        rustix::fs::chown(&path, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))
            .map_err(|errno| self.error("change the owner of", errno))
    }

    fn error(&self, what: &str, errno: Errno) -> Error {
        let place = self.volume.join(&self.path);
        let error =
            at_field(&self.field, &format!("cannot {what} `{}`: {}", place.display(), describe(errno)));
        if errno == Errno::NOENT && !self.writable {
            return error.help("put it there, or let a role write to it that runs before");
        }
        error
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn subpath(volume: &std::path::Path, path: &str) -> Subpath {
        Subpath {
            field: "roles.train.outputs.runs.subpath".to_owned(),
            destination: "/output".into(),
            volume: volume.to_owned(),
            path: path.to_owned(),
            writable: true,
        }
    }

    #[test]
    fn directories_are_created_for_the_role() {
        let scratch = tempfile::tempdir().unwrap();
        let wanted = subpath(scratch.path(), "a/學習率-0.1");
        assert!(wanted.open().unwrap_err().to_string().contains("no such file or directory"));
        for _ in 0..2 {
            wanted.create(&IndexSet::from([(0, 0)])).unwrap();
        }
        wanted.open().unwrap();
        let mode =
            |path: &str| std::fs::metadata(scratch.path().join(path)).unwrap().permissions().mode() & 0o7777;
        assert_eq!((mode("a"), mode("a/學習率-0.1")), (0o755, 0o755));
    }

    #[test]
    fn a_link_is_not_followed() {
        let scratch = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/etc", scratch.path().join("link")).unwrap();
        for path in ["link", "link/below"] {
            let wanted = subpath(scratch.path(), path);
            assert!(
                wanted.create(&IndexSet::new()).unwrap_err().to_string().contains("is a symbolic link"),
                "{path}"
            );
            assert!(wanted.open().unwrap_err().to_string().contains("is a symbolic link"), "{path}");
        }
        std::fs::write(scratch.path().join("file"), "").unwrap();
        assert!(subpath(scratch.path(), "file").create(&IndexSet::new()).is_err());
    }
}
