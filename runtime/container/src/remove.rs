//! Removes the directory of a container's root.
//!
//! An unprivileged user can meet two obstacles: directories without permissions, as in the archive, and files of other
//! ids of the container, which are other ids on the host.

use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use linux_raw_sys::general::CLONE_NEWUSER;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::child::report::Gate;
use crate::operation::{Operation, Step};
use crate::process::Exit;
use crate::start::{CgroupFds, PreparedProcess, Program};
use jobc_sys::error::{Error, Kind, Result, describe_io};
use jobc_sys::id_map::IdMaps;

/// Removes a directory with its content, whichever container user owns it. It may be gone already.
pub fn remove(directory: &Path) -> Result<()> {
    let failed = |because: &str| {
        Err(Error::new(Kind::System, format!("cannot remove `{}`: {because}", directory.display())))
    };
    match remove_tree(directory) {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
        Err(error) => return failed(&describe_io(&error)),
    }
    // A directory whose mode cannot be changed belongs to another id; the second error reports that.
    let _ = grant_owner_access(directory);
    match remove_tree(directory) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
        Err(error) => return failed(&describe_io(&error)),
        Ok(()) => return Ok(()),
    }
    match remove_as_container(directory)? {
        Exit::Code(0) => Ok(()),
        _ => failed("files in it belong to ids that this user cannot map"),
    }
}

/// Removes a directory with its contents, or a file.
///
/// The standard library's function needs a file descriptor and stack for each level, and an archive may contain any
/// number of levels, through links even more than a path can express. Here very deep directories are moved to the top.
fn remove_tree(path: &Path) -> io::Result<()> {
    remove_tree_at(CWD, path)
}

/// As [`remove`], for a path below an open directory.
pub(crate) fn remove_tree_at(parent: impl AsFd, path: impl rustix::path::Arg + Copy) -> io::Result<()> {
    let mut moved = 0;
    loop {
        let top = match rustix::fs::openat(&parent, path, DIRECTORY_FLAGS, Mode::empty()) {
            Err(Errno::NOTDIR | Errno::LOOP) => {
                return Ok(rustix::fs::unlinkat(&parent, path, AtFlags::empty())?);
            }
            other => other?,
        };
        let before = moved;
        remove_entries(&top, 1, &top, &mut moved)?;
        if moved == before {
            return Ok(rustix::fs::unlinkat(&parent, path, AtFlags::REMOVEDIR)?);
        }
    }
}

/// Removes the contents of a directory, except what it moves to the top.
fn remove_entries(directory: &OwnedFd, depth: usize, top: &OwnedFd, moved: &mut usize) -> io::Result<()> {
    const MAX_DEPTH: usize = 128;
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        if entry.file_type() == FileType::Directory || entry.file_type() == FileType::Unknown {
            match rustix::fs::openat(directory, name, DIRECTORY_FLAGS, Mode::empty()) {
                Ok(_) if depth == MAX_DEPTH => {
                    loop {
                        *moved += 1;
                        match rustix::fs::renameat(directory, name, top, format!(".moved-up-{moved}")) {
                            // Something has that name already.
                            Err(Errno::NOTDIR | Errno::NOTEMPTY | Errno::EXIST) => {}
                            other => break other?,
                        }
                    }
                    continue;
                }
                Ok(inner) => {
                    remove_entries(&inner, depth + 1, top, moved)?;
                    rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR)?;
                    continue;
                }
                Err(Errno::NOTDIR | Errno::LOOP) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        rustix::fs::unlinkat(directory, name, AtFlags::empty())?;
    }
    Ok(())
}

const DIRECTORY_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Gives the owner every right to every directory below a path.
fn grant_owner_access(path: &Path) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
    let magic = format!("/proc/self/fd/{}", directory.as_raw_fd());
    rustix::fs::chmod(&magic, Mode::RWXU)?;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            grant_owner_access(&entry.path())?;
        }
    }
    Ok(())
}

/// Runs rm(1) with the ids that this user's containers have.
fn remove_as_container(directory: &Path) -> Result<Exit> {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    let maps = IdMaps::rootless(uid.as_raw(), gid.as_raw())?;
    let step = |operation| Step { operation, pointer: None };
    let owned = |text: &CStr| text.to_owned();
    let path = CString::new(directory.as_os_str().as_bytes())
        .map_err(|_| Error::new(Kind::System, "a path with a NUL byte"))?;
    let prepared = PreparedProcess {
        steps: vec![
            step(Operation::SetParentDeathSignal(true)),
            step(Operation::Wait(Gate::IdMaps)),
            step(Operation::SetIds { uid: 0, gid: 0 }),
            step(Operation::CloseFrom { first: 3, except: Vec::new() }),
            step(Operation::ResetSignals(1 << 12)),
        ],
        namespaces: CLONE_NEWUSER,
        join_before_clone: Vec::new(),
        id_maps: Some(maps),
        network_devices: Vec::new(),
        classes: Vec::new(),
        hooks: false,
        set_not_dumpable: false,
        in_user_namespace: true,
        agent: None,
        program: Program {
            candidates: vec![owned(c"/bin/rm"), owned(c"/usr/bin/rm")],
            arguments: vec![owned(c"rm"), owned(c"-rf"), owned(c"--"), path],
            environment: vec![owned(c"PATH=/usr/bin:/bin")],
            secret_environment: crate::secret::SecretEnvironment::default(),
            filter: None,
            label: None,
            process: crate::trampoline::birth::ProgramProcess::Same,
        },
        descriptors: Vec::new(),
        report: None,
        warnings: Vec::new(),
    };
    prepared.spawn(CgroupFds::default(), &mut |_, _| Ok(()))?.wait()
}

#[cfg(test)]
mod tests;
