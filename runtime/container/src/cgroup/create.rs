//! Creates the cgroups of a plan and writes their limits.

pub(super) mod subtree_control;

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, Uid, chown};
use rustix::io::Errno;

use super::bpf;
use super::controller::Controller;
use super::devices::{self, program};
use super::file::{open, write, write_line};
use super::layout::Version;
use super::limit::{ALLOW_UNENFORCED_HELP, Limit, OptionalResource, has_swap};
use super::plan::{Group, Interface, Plan, accept_unenforced, device_rules_error};
use super::record::{Cgroup, GroupRecord, inode_of};
use super::request::CgroupRequest;
use super::unenforced::UnenforcedLimit;
use jobc_sys::error::{AtPath as _, Error, Kind, Result, describe};

/// How often a group is made again whose parent another container's end has just taken away.
const MAX_TRIES: usize = 16;

impl Plan {
    /// Makes the groups and writes the limits; returns the limits that nothing enforces.
    ///
    /// # Errors
    ///
    /// As [`Cgroup::create`]. Whatever was made is removed again.
    pub fn carry_out(&self, request: &CgroupRequest<'_>) -> Result<(Cgroup, Vec<UnenforcedLimit>)> {
        let mut cgroup = Cgroup::default();
        let mut unenforced = self.unenforced.clone();
        for group in &self.groups {
            match create_group(group, request, &mut cgroup) {
                Ok(more) => unenforced.extend(more),
                Err(error) => {
                    // The first error is reported; a group that cannot be removed is empty and does no harm.
                    let _ = cgroup.remove();
                    return Err(error);
                }
            }
        }
        Ok((cgroup, unenforced))
    }
}

/// Makes one group, writes its limits, and opens what its processes enter by.
pub(super) fn create_group(
    group: &Group,
    request: &CgroupRequest<'_>,
    cgroup: &mut Cgroup,
) -> Result<Vec<UnenforcedLimit>> {
    let directory = group.directory();
    let made = match create_directories(group, &directory) {
        Ok(made) => made,
        // No limit needs this group, and it cannot be created: on a read-only file system, for example.
        Err(CreateError::Kernel(errno, _)) if group.limits.is_empty() && is_refusal(errno) => {
            let lost = group.devices.as_ref().and_then(|_| device_rules_error(request, &describe(errno)));
            return accept_unenforced(lost.into_iter().collect(), request);
        }
        Err(CreateError::Kernel(errno, at)) if is_refusal(errno) => {
            let message = format!("cannot make the cgroup `{}`: {}", at.display(), describe(errno));
            let lost = group.limits.iter().map(|limit| {
                Error::new(Kind::Unenforceable, message.clone())
                    .at(&limit.pointer)
                    .help(ALLOW_UNENFORCED_HELP)
            });
            return accept_unenforced(lost.collect(), request);
        }
        Err(CreateError::Kernel(errno, at)) => {
            return Err(Error::system(format!("make the cgroup `{}`", at.display()), errno));
        }
        Err(CreateError::InUse) => {
            let message = format!("the cgroup `{}` is in use", directory.display());
            return Err(Error::new(Kind::State, message)
                .at(super::path::CGROUPS_PATH_POINTER)
                .help("use another cgroup path, or end the processes in it and below it and remove it"));
        }
    };
    cgroup.record.groups.push(GroupRecord {
        directory: directory.clone(),
        id: inode_of(&directory).unwrap_or_default(),
        version: group.interface.version(),
        controllers: group.interface.controllers().to_vec(),
        above: group.removable(&made),
    });
    let mut impossible = vec![];
    match &group.interface {
        Interface::V1(hierarchy) => {
            if hierarchy.controllers.contains(&Controller::Cpuset) {
                inherit_cpus(group, &made, &directory)?;
            }
            for limit in &group.limits {
                impossible.extend(write_limit(&directory, limit).err());
            }
            if let Some(rules) = &group.devices
                && let Err(error) = write_rules(&directory, rules)
            {
                // Only the host's root may write device rules, even in a delegated group.
                let without = || device_rules_error(request, &error.message());
                impossible.extend(if request.user_namespace { without() } else { Some(error) });
            }
            cgroup.join_fds.push(open_entry_fd(&directory, "tasks", OFlags::WRONLY)?);
        }
        Interface::V2 => {
            let switches = if made.is_empty() { vec![] } else { subtree_control::enable_controllers(group) };
            impossible.extend(write_unified(group, &directory, switches));
            let leaf = open_entry_fd(&directory, "", OFlags::DIRECTORY)?;
            if let Some(rules) = &group.devices
                && let Err(errno) = attach_device_program(&leaf, rules)
            {
                let why = format!("the kernel rejects the device program: {}", describe(errno));
                impossible.extend(device_rules_error(request, &why));
            }
            if let Some(owner) = request.owner {
                delegate_to(&directory, owner)?;
            }
            cgroup.into_fd = Some(leaf);
        }
    }
    accept_unenforced(impossible, request)
}

/// Opens the file by which a process enters a group: its `tasks`, or the directory itself.
pub(super) fn open_entry_fd(directory: &Path, file: &str, flags: OFlags) -> Result<OwnedFd> {
    let path = directory.join(file);
    let open = rustix::fs::open(&path, flags | OFlags::CLOEXEC, Mode::empty());
    open.map_err(|errno| Error::system(format!("open `{}`", path.display()), errno))
}

/// Why a group could not be made.
enum CreateError {
    Kernel(Errno, PathBuf),
    InUse,
}

/// Makes the group's directory, and those above it that are missing; returns these.
///
/// A leftover empty group of that name is recreated, so that none of its settings remain.
fn create_directories(group: &Group, directory: &Path) -> std::result::Result<Vec<PathBuf>, CreateError> {
    let mut made = vec![];
    for _ in 0..MAX_TRIES {
        match mkdir(directory) {
            Ok(()) => return Ok(made),
            Err(Errno::EXIST) if group.made_by_systemd => return Ok(made),
            Err(Errno::EXIST) => match rustix::fs::rmdir(directory) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(Errno::BUSY | Errno::NOTEMPTY) => return Err(CreateError::InUse),
                Err(errno) => return Err(CreateError::Kernel(errno, directory.to_owned())),
            },
            Err(Errno::NOENT) => {
                for above in group.ancestor_names() {
                    match mkdir(&above) {
                        Ok(()) => made.push(above),
                        Err(Errno::EXIST) => {}
                        // It was removed again by its parent's owner; the next try recreates it.
                        Err(Errno::NOENT) => break,
                        Err(errno) => return Err(CreateError::Kernel(errno, above)),
                    }
                }
            }
            Err(errno) => return Err(CreateError::Kernel(errno, directory.to_owned())),
        }
    }
    Err(CreateError::Kernel(Errno::NOENT, directory.to_owned()))
}

fn mkdir(directory: &Path) -> std::result::Result<(), Errno> {
    rustix::fs::mkdir(directory, Mode::from_raw_mode(0o755))
}

/// Whether an error means that groups cannot be created there, by this user or by any.
fn is_refusal(errno: Errno) -> bool {
    matches!(errno, Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::NODEV | Errno::OPNOTSUPP)
}

impl Interface {
    fn version(&self) -> Version {
        match self {
            Self::V1(_) => Version::V1,
            Self::V2 => Version::V2,
        }
    }

    fn controllers(&self) -> &[Controller] {
        match self {
            Self::V1(hierarchy) => &hierarchy.controllers,
            Self::V2 => &[],
        }
    }
}

impl Group {
    /// The directories above the group that are removed with it when they are empty, the deepest first.
    ///
    /// Below `jobc` that is the directory of a job, which the last task removes; `jobc` itself stays, so that the next
    /// start finds it with its controllers enabled. Elsewhere they are the directories created for this group.
    fn removable(&self, made: &[PathBuf]) -> Vec<PathBuf> {
        let of_jobc = self.names.first().is_some_and(|name| name == "jobc");
        let above = self.ancestor_names().into_iter().enumerate();
        let mut list: Vec<PathBuf> = above
            .filter(|(depth, directory)| if of_jobc { *depth > 0 } else { made.contains(directory) })
            .map(|(_, directory)| directory)
            .collect();
        list.reverse();
        list
    }
}

/// Copies the CPUs and memory nodes of the parent to new cgroup v1 groups: without any, no process can enter them. A
/// parent that has none itself, such as one just created for a pod, gets them too.
///
/// Below `jobc`, which is ours, the kernel does it for the next groups (`cgroup.clone_children`); any other parent
/// belongs to another owner.
fn inherit_cpus(group: &Group, made: &[PathBuf], directory: &Path) -> Result<()> {
    let is_ours = group.names.len() > 1 && group.names[0] == "jobc";
    if is_ours && made.is_empty() && has_cpus(directory) {
        return Ok(());
    }
    for one in made.iter().map(PathBuf::as_path).chain([directory]) {
        for file in ["cpuset.cpus", "cpuset.mems"] {
            let list = inherited_list(&group.mount, one.parent().unwrap_or(one), file)?;
            let set_later = one == directory && group.limits.iter().any(|limit| limit.files[0].0 == file);
            if !set_later {
                write_list(&one.join(file), &list)?;
            }
        }
    }
    if let Some(above) = directory.parent().filter(|_| is_ours) {
        // Only to save time: without it the lists are written for each group.
        let _ = write(&above.join("cgroup.clone_children"), "1");
    }
    Ok(())
}

/// Whether the kernel has copied the CPUs of the parent, and with them its memory nodes.
fn has_cpus(directory: &Path) -> bool {
    let mut list = [0; 64];
    rustix::fs::open(directory.join("cpuset.cpus"), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .and_then(|file| rustix::io::read(file, &mut list))
        .is_ok_and(|length| !list[..length].trim_ascii().is_empty())
}

/// The value of a file of a group at or below the mount; an empty one is filled from the parent.
fn inherited_list(mount: &Path, directory: &Path, file: &str) -> Result<String> {
    let path = directory.join(file);
    let list = std::fs::read_to_string(&path).at_path("read", &path)?;
    match directory.parent() {
        Some(above) if list.trim().is_empty() && directory != mount => {
            let list = inherited_list(mount, above, file)?;
            write_list(&path, &list)?;
            Ok(list)
        }
        _ => Ok(list.trim().to_owned()),
    }
}

fn write_list(path: &Path, list: &str) -> Result<()> {
    write(path, list).map_err(|errno| Error::system(format!("write `{}`", path.display()), errno))
}

/// Writes the limits of a group of the cgroup v2 hierarchy; its controllers are enabled where they are not.
///
/// `switches` are the controllers that could not be enabled so far, with the reason.
fn write_unified(group: &Group, directory: &Path, mut switches: Vec<(Controller, Error)>) -> Vec<Error> {
    let mut impossible = vec![];
    let mut tried = !switches.is_empty();
    for limit in &group.limits {
        let mut result = write_limit(directory, limit);
        let absent = |result: &Result<()>| {
            result.is_err() && !limit.files.iter().any(|(file, _)| directory.join(file).exists())
        };
        if !tried && absent(&result) {
            tried = true;
            switches = subtree_control::enable_controllers(group);
            result = write_limit(directory, limit);
        }
        let reason = switches.iter().find(|(controller, _)| *controller == limit.controller);
        match (result, reason) {
            (Err(error), Some((_, reason)))
                if limit.files.iter().all(|(file, _)| !directory.join(file).exists()) =>
            {
                let place = error.pointer().unwrap_or_default().to_owned();
                impossible.push(reason.clone().at(place));
            }
            (Err(error), _) => impossible.push(error),
            (Ok(()), _) => {}
        }
    }
    impossible
}

/// Writes a limit to those of its files that exist.
pub(super) fn write_limit(directory: &Path, limit: &Limit) -> Result<()> {
    let mut there = false;
    for (file, text) in &limit.files {
        match write(&directory.join(file), text) {
            Ok(()) if Limit::needs_read_back(file) && !is_applied(&directory.join(file), text) => {
                let message = format!("this kernel accepts `{file}` but does not enforce the limit");
                return Err(Error::new(Kind::Unenforceable, message)
                    .at(&limit.pointer)
                    .help(ALLOW_UNENFORCED_HELP));
            }
            Ok(()) => there = true,
            Err(Errno::NOENT) => {}
            Err(errno) => {
                return Err(Error::new(
                    Kind::Unenforceable,
                    format!("the kernel rejects `{text}` for `{file}`"),
                )
                .because(errno)
                .at(&limit.pointer)
                .help(ALLOW_UNENFORCED_HELP));
            }
        }
    }
    if there || limit.satisfied_without == Some(OptionalResource::Swap) && !has_swap() {
        return Ok(());
    }
    let names: Vec<String> = limit.files.iter().map(|(file, _)| format!("`{file}`")).collect();
    let message = format!("the kernel has no file {}", names.join(" or "));
    Err(Error::new(Kind::Unenforceable, message).at(&limit.pointer).help(ALLOW_UNENFORCED_HELP))
}

/// Whether a file has at most the number of bytes that was written to it; the kernel rounds down to pages.
fn is_applied(path: &Path, written: &str) -> bool {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let read = std::fs::read_to_string(path).ok().and_then(|text| number(&text));
    read.zip(number(written)).is_some_and(|(read, written)| read <= written)
}

/// Writes the rules about devices to a cgroup v1 group: each line in its own write, each file opened once.
fn write_rules(directory: &Path, rules: &[devices::Rule]) -> Result<()> {
    let lines = devices::writes(rules)?;
    for lines in lines.chunk_by(|(one, _), (next, _)| one == next) {
        let file = lines[0].0;
        let refused = |text: &str, errno| {
            Error::new(Kind::Unenforceable, format!("the kernel rejects `{text}` for `{file}`"))
                .because(errno)
                .at(devices::DEVICES_POINTER)
                .help(ALLOW_UNENFORCED_HELP)
        };
        let open = open(&directory.join(file)).map_err(|errno| refused(&lines[0].1, errno))?;
        for (_, line) in lines {
            write_line(&open, line).map_err(|errno| refused(line, errno))?;
        }
    }
    Ok(())
}

fn attach_device_program(leaf: &OwnedFd, rules: &[devices::Rule]) -> std::result::Result<(), Errno> {
    let program = bpf::load(&program::assemble(rules))?;
    bpf::attach(leaf.as_fd(), &program)
}

/// Gives a group to the container's root: the files that the kernel says may be given (cgroup-v2.rst, "Delegation").
///
/// The limit files stay ours, so nothing below the group can exceed them.
fn delegate_to(directory: &Path, (uid, gid): (u32, u32)) -> Result<()> {
    for file in ["", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"] {
        let path = directory.join(file);
        let owner = (Some(Uid::from_raw(uid)), Some(rustix::fs::Gid::from_raw(gid)));
        match chown(&path, owner.0, owner.1) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => {
                return Err(Error::system(
                    format!("change the owner of `{}` to the container's root", path.display()),
                    errno,
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_the_kernel_takes_and_ignores_is_not_kept() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = "memory.kmem.limit_in_bytes";
        let limit = Limit {
            controller: Controller::Memory,
            files: vec![(file.to_owned(), "10000".to_owned())],
            pointer: "/linux/resources/memory/kernel".to_owned(),
            satisfied_without: None,
        };
        let path = directory.path().join(file);
        let with = |content: &str| {
            std::fs::write(&path, content).expect("a file");
            write_limit(directory.path(), &limit).map_err(|error| error.to_string())
        };
        // A regular file keeps what follows the five digits that are written.
        assert_eq!(with(""), Ok(()));
        let refused = "config.json: /linux/resources/memory/kernel: this kernel accepts `memory.kmem.limit_in_bytes` but does not enforce the limit";
        assert_eq!(with("9223372036854771712"), Err(refused.to_owned()));
        std::fs::write(&path, "8192").expect("a file");
        assert!(
            is_applied(&path, "10000")
                && !is_applied(&path, "4096")
                && !is_applied(&directory.path().join("none"), "1")
        );
    }
}
