//! The flat list of steps between the new process and the user's program.
//!
//! A step holds all it needs: paths as C strings, complete option lists, open file descriptors of the parent. The new
//! process executes the list without allocating, which it must not do while it shares its parent's memory. `jobc run
//! --dry-run` prints the same list with the steps around it ([`listing`]).

mod display;

use std::ffi::CString;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::child::Child;
use crate::child::path::{ContainerPath, TargetKind};
use crate::child::report::Gate;
use crate::config::memory_policy::MemoryPolicy;
use crate::devices::{self, DeviceNode};
use crate::hooks::container_namespace::ContainerHook;
use crate::labels::Attributes;
use crate::mounts::cgroups::MountCgroups;
use crate::mounts::{self, Mount};
use crate::namespaces::{self, IdMapFiles, JoinNamespace};
use crate::privileges::{self, SetCapabilities};
use crate::rootfs::{self, EnterRoot};
use crate::terminal::console::Console;
use jobc_sys::syscall::{CWD, Fd, Kernel, MountAttributes, Prctl};

/// A step, and the field of config.json that it comes from.
#[derive(Debug)]
pub struct Step {
    /// What to do.
    pub operation: Operation,
    /// A JSON Pointer into config.json; `None` for steps of every container.
    pub pointer: Option<String>,
}

/// The operations of the new process, in the order of [`crate::prepare`].
#[derive(Debug)]
pub enum Operation {
    /// Ask to be killed when the thread that made this process ends, or no longer.
    SetParentDeathSignal(bool),
    /// Prevent other processes from reading this one's memory.
    NotDumpable,
    /// Wait until the parent has done its part, and opens the gate.
    Wait(Gate),
    /// Write this process's own id maps: one user, one group.
    MapIds(IdMapFiles),
    /// Become a user and group that the user namespace knows.
    SetIds {
        /// User id in the namespace.
        uid: u32,
        /// Group id in the namespace.
        gid: u32,
    },
    /// Join the cgroup v1 groups, all in one go.
    JoinCgroups(Vec<Fd>),
    /// Enter an existing namespace.
    JoinNamespace(JoinNamespace),
    /// Make these the file descriptors 0, 1 and 2.
    SetStreams {
        /// Ours for each.
        streams: [Fd; 3],
        /// The user whom those that are pipes are given to, who may then open them again as /dev/stdout.
        owner: u32,
    },
    /// Give the pipes that are the standard streams to the program's user, who opens them by name (`/dev/stdout`).
    GiveStreams {
        /// The user.
        owner: u32,
        /// Whether regular files are given, too.
        files: bool,
    },
    /// Leave the parent's namespaces for new ones (`CLONE_NEW*` bits).
    Unshare(u32),
    /// Set the clocks of the new time namespace.
    SetClocks(CString),
    /// Start a new session.
    NewSession,
    /// Start a new session keyring, with an SELinux label if there is one.
    NewKeyring(Option<CString>),
    /// Set the host name.
    SetHostName(CString),
    /// Set the NIS domain name.
    SetDomainName(CString),
    /// Bring the loopback interface up.
    LoopbackUp,
    /// Keep this namespace's mounts from showing elsewhere: `MS_*` propagation of `/` and all below.
    SetPropagation(u64),
    /// Put the container's root in place.
    EnterRoot(EnterRoot),
    /// Hand out the directory with the root's writable layers, over a connected Unix socket.
    SendLayers(Fd),
    /// Mount something below the root.
    Mount(Mount),
    /// Mount the cgroup v1 hierarchies side by side.
    MountCgroups(MountCgroups),
    /// Make or bind a device node.
    MakeNode(DeviceNode),
    /// Make a symbolic link below /dev.
    Link {
        /// The target of the link.
        target: CString,
        /// Where it stands.
        place: ContainerPath,
    },
    /// Open the container's terminal and hand its other side over.
    OpenConsole(Console),
    /// Run a hook inside the container's namespaces.
    Hook(ContainerHook),
    /// Make a directory with all above it, where it is missing and the root may be written.
    MakeDirectory(ContainerPath),
    /// Make one mount read-only, once everything in it is made.
    ReadOnlyMount(ContainerPath),
    /// Make the root read-only, and those of its directories that are separate writable mounts.
    ReadOnlyRoot(Vec<ContainerPath>),
    /// Hide a path.
    Mask(ContainerPath),
    /// Make a path read-only.
    MakeReadOnly(ContainerPath),
    /// Write a kernel setting that a namespace keeps apart: its path below /proc/sys, and its value.
    SetKernelParameter(CString, CString),
    /// Keep the directory of this process's attributes open, for the label that is set when the program starts.
    OpenAttributes(Attributes),
    /// Make the new root `/`.
    PivotRoot,
    /// Set the root's propagation: `MS_*` bits.
    SetRootPropagation(u64),
    /// Set a resource limit.
    SetLimit {
        /// Its name in config.json.
        name: &'static str,
        /// `RLIMIT_*`.
        resource: u32,
        /// Soft limit.
        soft: u64,
        /// Hard limit.
        hard: u64,
    },
    /// Set how soon the kernel kills this process when memory runs out.
    SetOomScore(CString),
    /// Set the memory policy (set_mempolicy(2)).
    SetMemoryPolicy(MemoryPolicy),
    /// Join the classes of cache and memory bandwidth, by their `tasks` files.
    JoinClasses(Vec<Fd>),
    /// Set the execution domain (personality(2)).
    SetPersonality(u32),
    /// Set the scheduling policy: a `struct sched_attr`.
    SetScheduler(Vec<u8>),
    /// Run on some CPUs only, a bit for each.
    SetAffinity(Vec<u64>),
    /// Set the I/O priority: class and level as ioprio_set(2) packs them.
    SetIoPriority(u32),
    /// Give up gaining privileges.
    NoNewPrivileges,
    /// Become the user.
    BecomeUser {
        /// User id.
        uid: u32,
        /// Group id.
        gid: u32,
        /// Further groups; nothing where this namespace forbids setting them.
        groups: Option<Vec<u32>>,
    },
    /// Set the capability sets.
    SetCapabilities(SetCapabilities),
    /// Drop what the bounding set must not have.
    DropBounding(Vec<u32>),
    /// Set the mask of new files' modes.
    SetUmask(u32),
    /// Go to the working directory, which must be inside the root.
    ChangeDirectory {
        /// Its path.
        path: CString,
        /// Whether [`RetryDirectory`](Self::RetryDirectory) follows, so that failure is allowed here.
        is_retried: bool,
    },
    /// Go to the working directory as the program's user, where that was denied before.
    RetryDirectory(CString),
    /// Check that the program exists and can be executed, before the start is waited for: one of these paths.
    FindProgram(Vec<CString>),
    /// Wait for a byte on a file descriptor: the start.
    Hold(Fd),
    /// Close every file descriptor from a number on.
    CloseFrom {
        /// The first that is closed; those below are the program's.
        first: Fd,
        /// Those that are still needed, in order; the program's start closes them.
        except: Vec<Fd>,
    },
    /// Take signals as a fresh program does: those that are ignored, bit n-1 for signal n, are so no longer.
    ResetSignals(u64),
}

/// Gives a pipe, or with `files` a regular file, to a user: a program can write to open files in any case, and opening
/// them by name needs this. Anything else, /dev/null above all, is the host's own file.
fn give_stream<K: Kernel>(kernel: &K, fd: Fd, owner: u32, files: bool) -> Result<(), Errno> {
    let file = kernel.stat(fd)?;
    if owner != 0 && file.uid != owner && (file.is_pipe() || files && file.is_regular()) {
        // Not permitted where the owner has no id in the user namespace.
        let _ = kernel.fchown(fd, owner, file.gid);
    }
    Ok(())
}

impl Operation {
    /// Carries the step out in the new process.
    pub fn carry_out<K: Kernel>(&self, child: &mut Child<'_, K>) -> Result<(), Errno> {
        let kernel = child.kernel;
        match self {
            Self::SetParentDeathSignal(end) => kernel.prctl(Prctl::EndWithParent(*end)),
            Self::NotDumpable => kernel.prctl(Prctl::NotDumpable),
            Self::Wait(gate) => child.report.wait_at(*gate),
            Self::MapIds(files) => files.write(child),
            Self::SetIds { uid, gid } => kernel.setgid(*gid).and_then(|()| kernel.setuid(*uid)),
            Self::JoinCgroups(groups) | Self::JoinClasses(groups) => {
                groups.iter().try_for_each(|&group| kernel.write(group, b"0"))
            }
            Self::JoinNamespace(namespace) => kernel.setns(namespace.fd, namespace.kind.flag()),
            Self::SetStreams { streams, owner } => streams.iter().zip(0..).try_for_each(|(&fd, standard)| {
                give_stream(kernel, fd, *owner, false)?;
                kernel.dup_to(fd, standard)
            }),
            Self::GiveStreams { owner, files } => {
                (0..=2).try_for_each(|fd| match give_stream(kernel, fd, *owner, *files) {
                    // The caller has closed it.
                    Err(Errno::BADF) => Ok(()),
                    other => other,
                })
            }
            Self::Unshare(flags) => kernel.unshare(*flags),
            Self::SetClocks(offsets) => child.write_own(c"self/timens_offsets", offsets.as_bytes()),
            Self::NewSession => kernel.setsid(),
            Self::NewKeyring(label) => {
                if let Some(label) = label {
                    child.write_own(c"self/attr/keycreate", label.as_bytes())?;
                }
                match kernel.new_keyring() {
                    // A kernel without keyrings, or whose filter for us forbids them, has none to share.
                    Err(Errno::NOSYS) => Ok(()),
                    other => other,
                }
            }
            Self::SetHostName(name) => kernel.sethostname(name.as_bytes()),
            Self::SetDomainName(name) => kernel.setdomainname(name.as_bytes()),
            Self::LoopbackUp => kernel.loopback_up(),
            Self::SetPropagation(propagation) => kernel.set_propagation(*propagation),
            Self::EnterRoot(root) => root.carry_out(child),
            Self::SendLayers(socket) => rootfs::send_layers(kernel, *socket),
            Self::Mount(mount) => mount.carry_out(child),
            Self::MountCgroups(mounts) => mounts.carry_out(child),
            Self::MakeNode(node) => node.carry_out(child),
            Self::Link { target, place } => devices::link(target, place, child),
            Self::OpenConsole(console) => console.carry_out(child),
            Self::Hook(hook) => hook.carry_out(child),
            Self::MakeDirectory(place) => match place.create(child, TargetKind::Directory) {
                // The step that uses it reports what is wrong.
                Err(Errno::ROFS | Errno::ACCESS | Errno::NOTDIR | Errno::LOOP) => Ok(()),
                made => made.map(drop),
            },
            Self::ReadOnlyMount(place) => mounts::make_mount_read_only(child, place),
            Self::ReadOnlyRoot(directories) => mounts::make_root_read_only(child, directories),
            Self::Mask(place) => rootfs::mask(place, child),
            Self::MakeReadOnly(place) => rootfs::make_read_only(place, child),
            Self::SetKernelParameter(path, value) => child.write_proc(path, value.as_bytes()),
            Self::OpenAttributes(attributes) => attributes.carry_out(child),
            Self::PivotRoot => rootfs::pivot(child),
            Self::SetRootPropagation(propagation) => kernel.mount_setattr(
                child.root,
                false,
                MountAttributes { propagation: *propagation, ..MountAttributes::default() },
            ),
            Self::SetLimit { resource, soft, hard, .. } => kernel.setrlimit(*resource, *soft, *hard),
            Self::SetOomScore(score) => child.write_own(c"self/oom_score_adj", score.as_bytes()),
            Self::SetMemoryPolicy(policy) => kernel.set_mempolicy(policy.mode, &policy.nodes),
            Self::SetPersonality(persona) => kernel.personality(*persona),
            Self::SetScheduler(attributes) => kernel.sched_setattr(attributes),
            Self::SetAffinity(cpus) => kernel.sched_setaffinity(cpus),
            Self::SetIoPriority(value) => kernel.ioprio_set(*value),
            Self::NoNewPrivileges => kernel.prctl(Prctl::NoNewPrivileges),
            Self::BecomeUser { uid, gid, groups } => {
                privileges::become_user(kernel, *uid, *gid, groups.as_deref())
            }
            Self::SetCapabilities(sets) => sets.carry_out(kernel),
            Self::DropBounding(dropped) => {
                dropped.iter().try_for_each(|&capability| kernel.prctl(Prctl::DropBounding(capability)))
            }
            Self::SetUmask(mask) => {
                kernel.umask(*mask);
                Ok(())
            }
            Self::ChangeDirectory { path, .. } if child.at_root && path.as_c_str() == c"/" => Ok(()),
            Self::ChangeDirectory { path, is_retried } => match namespaces::enter_directory(kernel, path) {
                Err(Errno::ACCESS) if *is_retried => {
                    child.directory_denied = true;
                    Ok(())
                }
                other => other,
            },
            Self::RetryDirectory(_) if !child.directory_denied => Ok(()),
            Self::RetryDirectory(path) => namespaces::enter_directory(kernel, path),
            Self::FindProgram(candidates) => find_program(kernel, candidates),
            Self::Hold(fd) => child.report.hold(kernel, *fd),
            Self::CloseFrom { first, except } => close_from(kernel, *first, except),
            Self::ResetSignals(ignored) => kernel.default_signals(*ignored),
        }
    }
}

/// As in execvp(3): a permission error is reported only if nothing else is found.
///
/// A directory, which may be searched where a program may be executed, is not one: execve(2) gives `EACCES` for it.
fn find_program<K: Kernel>(kernel: &K, candidates: &[CString]) -> Result<(), Errno> {
    let mut refused = Errno::NOENT;
    for path in candidates {
        match kernel.may_execute(path) {
            Ok(()) => {
                let flags = OFlags::PATH | OFlags::DIRECTORY;
                match kernel.open(CWD, path, flags, Mode::empty(), ResolveFlags::empty()) {
                    Ok(directory) => {
                        kernel.close(directory);
                        refused = Errno::ACCESS;
                    }
                    Err(_) => return Ok(()),
                }
            }
            Err(Errno::NOENT | Errno::NOTDIR) => {}
            Err(errno) => refused = errno,
        }
    }
    Err(refused)
}

fn close_from<K: Kernel>(kernel: &K, first: Fd, except: &[Fd]) -> Result<(), Errno> {
    let mut next = first;
    for &kept in except.iter().filter(|&&kept| kept >= first) {
        if next < kept {
            kernel.close_range(next, kept - 1)?;
        }
        next = kept + 1;
    }
    kernel.close_range(next, Fd::MAX)
}

#[cfg(test)]
mod tests;
