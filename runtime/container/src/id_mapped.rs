//! Copies of the host's mount trees that the parent creates for bind mounts: ID-mapped mounts (mount_setattr(2),
//! `MOUNT_ATTR_IDMAP`), and those that the container's root cannot reach.
//!
//! The kernel takes the map from a user namespace, and requires CAP_SYS_ADMIN in the one that the file system was
//! mounted in: a container with its own user namespace lacks it. So the parent creates and maps the copy, and the
//! container's first process only attaches it. Source: Documentation/filesystems/idmappings.rst.

use std::ffi::CStr;
use std::fmt;
use std::fs::File;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};

use linux_raw_sys::general::CLONE_NEWUSER;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{OpenTreeFlags, open_tree};

use crate::child::report::Gate;
use crate::mounts::id_mapped::{IdMapSource, IdMappedMount};
use crate::mounts::{Mount, Source, TreeCopy};
use crate::operation::{Operation, Step};
use crate::process::{Launch, Process, Program};
use jobc_sys::c_list::CList;
use jobc_sys::error::{Error, Kind, Location, Result};
use jobc_sys::id_map::IdMaps;
use jobc_sys::syscall::linux::Linux;
use jobc_sys::syscall::{Fd, Kernel as _, MountAttributes};

/// A path of the host.
#[derive(Clone, Copy)]
struct HostPath<'a> {
    path: &'a CStr,
    /// Whether a symbolic link in it is an error.
    linkless: bool,
}

/// Copies the tree at a path of the host and maps its owners by a user namespace.
fn copy_mapped(mapped: &IdMappedMount, path: HostPath<'_>, recursive: bool, users: Fd) -> Result<OwnedFd> {
    let (source, tree) = copy(path, recursive, Some(mapped.propagation))?;
    let given = Linux.map_ids(tree.as_fd(), mapped.recursive, users);
    given.map_err(|errno| refused(path.path, &source, mapped.recursive, errno))?;
    Ok(tree)
}

/// Copies the mount tree at a path of the host, with its own or another propagation; returns the kind of file at the
/// path, and the copy.
fn copy(from: HostPath<'_>, recursive: bool, propagation: Option<u64>) -> Result<(OwnedFd, OwnedFd)> {
    let HostPath { path, linkless } = from;
    let machine = |errno| {
        let what = format!("bind `{}`", path.to_string_lossy());
        let error = Error::system(what, errno);
        if errno == Errno::NOENT {
            return error.help(format!("make `{}`, or remove the mount", path.to_string_lossy()));
        }
        error
    };
    let resolve = if linkless { ResolveFlags::NO_SYMLINKS } else { ResolveFlags::empty() };
    let source = rustix::fs::openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve);
    let source = source.map_err(machine)?;
    let mut flags =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
    flags.set(OpenTreeFlags::AT_RECURSIVE, recursive);
    let tree = open_tree(&source, c"", flags).map_err(machine)?;
    // Mounts of the container below it must not propagate to the host: the copies of its own tree are made private too.
    if let Some(propagation) = propagation {
        let attributes = MountAttributes { propagation, ..MountAttributes::default() };
        Linux.mount_setattr(tree.as_raw_fd(), true, attributes).map_err(machine)?;
    }
    Ok((source, tree))
}

/// Makes the copies for all steps that mount one, each map's user namespace once; they must stay open until the new
/// process has its own.
///
/// # Errors
///
/// The error of the kernel, at the mount's path in config.json.
pub fn create_mounts(steps: &mut [Step]) -> Result<Vec<OwnedFd>> {
    create_mounts_with(steps, &mut user_namespace)
}

fn create_mounts_with(
    steps: &mut [Step],
    namespace: &mut dyn FnMut(&IdMaps) -> Result<OwnedFd>,
) -> Result<Vec<OwnedFd>> {
    let mut namespaces: Vec<(IdMaps, OwnedFd)> = Vec::new();
    let mut trees = Vec::new();
    for Step { operation, pointer: place } in steps {
        let Operation::Mount(Mount {
            source: Source::Bind { path, recursive, linkless, copy: Some(wanted) },
            ..
        }) = operation
        else {
            continue;
        };
        let path = HostPath { path, linkless: *linkless };
        let mapped = match wanted {
            TreeCopy::IdMapped(mapped) => mapped,
            TreeCopy::Spare { propagation, tree } => {
                // The process itself reports errors of the path.
                if let Ok((_, copy)) = copy(path, *recursive, Some(*propagation)) {
                    *tree = copy.as_raw_fd();
                    trees.push(copy);
                }
                continue;
            }
            TreeCopy::Peer { tree } => {
                let (_, copy) = copy(path, *recursive, None).map_err(|error| Error {
                    at: place.as_deref().map(|place| Location::Config(place.into())),
                    ..error
                })?;
                *tree = copy.as_raw_fd();
                trees.push(copy);
                continue;
            }
        };
        let at = |error: Error| Error {
            at: place.as_deref().map(|place| Location::Config(place.into())),
            ..error
        };
        let users = match &mapped.ids {
            IdMapSource::Namespace(fd) => *fd,
            IdMapSource::Maps(maps) => {
                if let Some((_, users)) = namespaces.iter().find(|(known, _)| known == maps) {
                    users.as_raw_fd()
                } else {
                    let users = namespace(maps).map_err(at)?;
                    let fd = users.as_raw_fd();
                    namespaces.push((maps.clone(), users));
                    fd
                }
            }
        };
        let tree = copy_mapped(mapped, path, *recursive, users).map_err(at)?;
        mapped.tree = tree.as_raw_fd();
        trees.push(tree);
    }
    Ok(trees)
}

/// A user namespace with these maps: that of a process which ends as soon as it has been opened.
fn user_namespace(maps: &IdMaps) -> Result<OwnedFd> {
    let step = |operation| Step { operation, pointer: None };
    let nothing = File::open("/dev/null").map_err(|error| host_error(&error))?;
    let launch = Launch {
        steps: vec![step(Operation::SetParentDeathSignal(true)), step(Operation::Wait(Gate::IdMaps))],
        namespaces: CLONE_NEWUSER,
        join_before_clone: Vec::new(),
        set_not_dumpable: false,
        cgroup: None,
        has_parent_work: true,
        in_user_namespace: true,
        agent: None,
        // Unreachable.
        program: Program {
            image: nothing.into(),
            failure: None,
            failure_writer: None,
            reply: None,
            reply_writer: None,
            makes_last: false,
            attributes: None,
            arguments: CList::new(Vec::new()),
            environment: CList::new(Vec::new()),
        },
        descriptors: Vec::new(),
    };
    let mut made = None;
    let ended = Process::spawn(launch, &mut |_, pid| {
        made = Some(maps.write(pid).and_then(|()| {
            File::open(format!("/proc/{pid}/ns/user")).map(OwnedFd::from).map_err(|error| host_error(&error))
        }));
        Err(Error::new(Kind::State, "the process is no longer needed"))
    });
    made.unwrap_or_else(|| Err(ended.err().unwrap_or_else(|| host_error(&Errno::CHILD.into()))))
}

fn host_error(error: &std::io::Error) -> Error {
    let errno = Errno::from_io_error(error).unwrap_or(Errno::IO);
    Error::system("make a user namespace for an id-mapped mount", errno)
}

/// Explains why the kernel refused the map; its rules share error numbers.
fn refused(path: &CStr, source: &OwnedFd, recursive: bool, errno: Errno) -> Error {
    let shown = path.to_string_lossy();
    let error = Error::system(format!("id-map `{shown}`"), errno);
    match errno {
        Errno::PERM if is_mapped(source) => {
            error.help(format!("`{shown}` is on a mount that is already id-mapped; bind it from another mount"))
        }
        Errno::PERM => error.help(
            "it needs CAP_SYS_ADMIN in the user namespace where the file system was mounted, and no mount below it may be id-mapped",
        ),
        Errno::INVAL if recursive => error.help(
            "every file system below it must support it, as ext4, xfs, btrfs and tmpfs do; `idmap` maps only the first",
        ),
        Errno::INVAL => error.help(
            "its file system does not support id mapping; bind a directory on ext4, xfs, btrfs or tmpfs, or one that belongs to the right ids",
        ),
        Errno::NOSYS => error.help("it needs Linux 5.12 or newer"),
        _ => error,
    }
}

/// Whether the mount that a file is on shows other owners.
fn is_mapped(file: &OwnedFd) -> bool {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    mount_id(file.as_fd()).and_then(|id| shows_others(&table, &id)).unwrap_or(false)
}

fn mount_id(file: BorrowedFd<'_>) -> Option<String> {
    let about = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd())).ok()?;
    Some(about.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim().to_owned())
}

/// The fields of a mount's line in mountinfo (proc_pid_mountinfo(5)); `None` if there is none for it.
fn shows_others(table: &str, id: &str) -> Option<bool> {
    let line = table.lines().find(|line| line.split(' ').next() == Some(id))?;
    Some(line.split(' ').nth(5)?.split(',').any(|option| option == "idmapped"))
}

impl fmt::Display for IdMappedMount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.recursive { "owners of all below " } else { "owners " })?;
        match &self.ids {
            IdMapSource::Namespace(_) => f.write_str("as the user namespace maps them"),
            IdMapSource::Maps(maps) => {
                let text = |text: String| text.trim_end().replace('\n', ", ");
                write!(f, "mapped: users {}; groups {}", text(maps.users.text()), text(maps.groups.text()))
            }
        }
    }
}

#[cfg(test)]
mod tests;
