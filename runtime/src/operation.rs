//! The flat list of steps between the new process and the user's program.
//!
//! A step holds all it needs: paths are C strings, option lists are made, descriptors of the parent are open. So the new
//! process carries the list out without allocating, which it must not do while it shares its parent's memory.
//! `jobc run --dry-run` prints the same list.

use std::ffi::CString;
use std::fmt;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::devices::{self, Node};
use crate::error::{Error, Kind};
use crate::hooks::inside::HookInside;
use crate::mounts::cgroups::MountCgroups;
use crate::mounts::{self, Mount};
use crate::namespaces::{self, IdMapFiles, Join};
use crate::privileges::{self, SetCapabilities};
use crate::process::Gate;
use crate::rootfs::{self, EnterRoot, Place};
use crate::syscall::{CWD, Fd, Kernel, MountAttributes, Prctl};
use crate::terminal::console::Console;

/// A step, and the field of config.json that asked for it.
#[derive(Debug)]
pub struct Step {
    /// What to do.
    pub operation: Operation,
    /// A JSON Pointer into config.json; nothing for what is always done.
    pub place: Option<String>,
}

/// What the new process does, in the order of [`crate::prepare`].
#[derive(Debug)]
pub enum Operation {
    /// Ask to be killed when the thread that made this process ends, or no longer.
    EndWithParent(bool),
    /// Let no other process look into this one's memory.
    NotDumpable,
    /// Wait until the parent has done its part, and opens the gate.
    Wait(Gate),
    /// Write this process's own id maps: one user, one group.
    MapIds(IdMapFiles),
    /// Become a user and group that the user namespace knows.
    TakeIds {
        /// User id in the namespace.
        uid: u32,
        /// Group id in the namespace.
        gid: u32,
    },
    /// Join the version 1 control groups, all in one go.
    JoinCgroups(Vec<Fd>),
    /// Enter a namespace that is there.
    Join(Join),
    /// Leave the parent's namespaces for new ones (`CLONE_NEW*` bits).
    Unshare(u32),
    /// Set the clocks of the new time namespace.
    SetClocks(CString),
    /// Begin a session of one's own.
    NewSession,
    /// Begin a session keyring of one's own.
    NewKeyring,
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
    /// Mount something below the root.
    Mount(Mount),
    /// Mount the version 1 hierarchies of control groups side by side.
    MountCgroups(MountCgroups),
    /// Make or bind a device node.
    MakeNode(Node),
    /// Make a symbolic link below /dev.
    Link {
        /// What the link says.
        target: CString,
        /// Where it stands.
        place: Place,
    },
    /// Open the container's terminal and hand its other side over.
    OpenConsole(Console),
    /// Run a hook inside the container's namespaces.
    Hook(HookInside),
    /// Make the root read-only.
    ReadOnlyRoot,
    /// Hide a path.
    Mask(Place),
    /// Make a path read-only.
    MakeReadOnly(Place),
    /// Write a kernel setting that a namespace keeps apart: its path below /proc/sys, and its value.
    SetKernelParameter(CString, CString),
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
    /// Set the execution domain (personality(2)).
    SetPersonality(u32),
    /// Set the scheduling policy: a `struct sched_attr`.
    SetScheduler(Vec<u8>),
    /// Set the I/O priority: class and level as ioprio_set(2) packs them.
    SetIoPriority(u32),
    /// Give up gaining privileges.
    NoNewPrivileges,
    /// Load the filter of system calls early, while there is the right to: without `noNewPrivileges`.
    LoadFilter(crate::seccomp::Program),
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
    ChangeDirectory(CString),
    /// Wait for a byte on a descriptor: the start.
    Hold(Fd),
    /// Close every descriptor from a number on.
    CloseFrom {
        /// The first that is closed; those below are the program's.
        first: Fd,
        /// Those that are still needed, in order; the program's start closes them.
        except: Vec<Fd>,
    },
    /// Take signals as a fresh program does.
    DefaultSignals,
}

/// The places whose mounts are remembered, inner ones first.
const KEPT: [&std::ffi::CStr; 4] = [c"dev/pts", c"dev", c"proc", c"sys"];

/// What the new process remembers between steps: descriptors.
pub struct Child<'a, K> {
    /// The kernel it speaks to.
    pub kernel: &'a K,
    /// The container's root.
    pub root: Fd,
    /// /proc of the machine, opened when first needed.
    pub proc: Option<Fd>,
    /// The file systems that were mounted at [`KEPT`].
    kept: [Option<Fd>; KEPT.len()],
    /// The first cover of a masked folder.
    pub empty_folder: Option<Fd>,
    /// The container's null device, seen to be one.
    pub null: Option<Fd>,
    /// Whether the process is in a user namespace of its own, where it cannot make device nodes.
    pub in_user_namespace: bool,
    /// Opens gates and holds: what the parent and this process share.
    pub report: &'a crate::process::Report,
}

impl<'a, K: Kernel> Child<'a, K> {
    /// A child that has done nothing yet.
    pub fn new(kernel: &'a K, report: &'a crate::process::Report, in_user_namespace: bool) -> Self {
        Self {
            kernel,
            root: CWD,
            proc: None,
            kept: [None; KEPT.len()],
            empty_folder: None,
            null: None,
            in_user_namespace,
            report,
        }
    }

    /// The machine's /proc, which must be a procfs and nothing mounted over it.
    pub fn proc(&mut self) -> Result<Fd, Errno> {
        const PROC_SUPER_MAGIC: u64 = 0x9fa0;
        if let Some(proc) = self.proc {
            return Ok(proc);
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let proc = self.kernel.open(CWD, c"/proc", flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
        if self.kernel.file_system(proc)? != PROC_SUPER_MAGIC {
            return Err(Errno::NODEV);
        }
        self.proc = Some(proc);
        Ok(proc)
    }

    /// What a path below the root is resolved from: the innermost file system that this process has mounted on its way,
    /// by the mount's own descriptor, or the root; and the rest of the path.
    ///
    /// So nobody who can rename folders of the image meanwhile leads a step away from what was mounted.
    pub fn base<'p>(&self, path: &'p std::ffi::CStr) -> (Fd, &'p std::ffi::CStr) {
        for (at, fd) in KEPT.iter().zip(self.kept) {
            if let Some(fd) = fd
                && let Some(rest) = path.to_bytes_with_nul().strip_prefix(at.to_bytes())
                && let Some(rest) = rest.strip_prefix(b"/")
                && let Ok(rest) = std::ffi::CStr::from_bytes_with_nul(rest)
            {
                return (fd, rest);
            }
        }
        (self.root, path)
    }

    /// Keeps the descriptor of a file system that was mounted, if its place is one of [`KEPT`]; says whether it is.
    pub fn remember(&mut self, place: &std::ffi::CStr, mount: Fd) -> bool {
        let index = KEPT.iter().position(|kept| *kept == place);
        index.map(|index| self.kept[index] = Some(mount)).is_some()
    }

    /// The folder that a place stands in, made where it is missing, and the place's last name.
    pub fn parent<'p>(&self, place: &'p Place) -> Result<(Fd, &'p std::ffi::CStr), Errno> {
        if let ([_, Some(dev), ..], Some(name)) = (self.kept, place.name_in(KEPT[1])) {
            return Ok((dev, name));
        }
        place.make_parent(self)
    }

    /// The container's /dev/null, which must be the null device (CVE-2025-31133).
    pub fn null_device(&mut self) -> Result<Fd, Errno> {
        if let Some(null) = self.null {
            return Ok(null);
        }
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let (base, path) = self.base(c"dev/null");
        let null = self.kernel.open(base, path, OFlags::PATH | OFlags::NOFOLLOW, Mode::empty(), resolve)?;
        if !self.kernel.stat(null)?.is_character_device(1, 3) {
            return Err(Errno::NXIO);
        }
        self.null = Some(null);
        Ok(null)
    }

    /// Writes a file below the machine's /proc, which must be a procfs file.
    pub fn write_proc(&mut self, path: &std::ffi::CStr, bytes: &[u8]) -> Result<(), Errno> {
        let proc = self.proc()?;
        // `self` is a symbolic link of procfs itself; nothing else on the way may be one, or another file system.
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
        let file = self.kernel.open(proc, path, OFlags::WRONLY, Mode::empty(), resolve)?;
        let written = self.kernel.write(file, bytes);
        self.kernel.close(file);
        written
    }
}

impl Operation {
    /// Carries the step out in the new process.
    pub fn carry_out<K: Kernel>(&self, child: &mut Child<'_, K>) -> Result<(), Errno> {
        let kernel = child.kernel;
        match self {
            Self::EndWithParent(end) => kernel.prctl(Prctl::EndWithParent(*end)),
            Self::NotDumpable => kernel.prctl(Prctl::NotDumpable),
            Self::Wait(gate) => child.report.wait_at(*gate),
            Self::MapIds(files) => files.write(child),
            Self::TakeIds { uid, gid } => kernel.setgid(*gid).and_then(|()| kernel.setuid(*uid)),
            Self::JoinCgroups(groups) => groups.iter().try_for_each(|&group| kernel.write(group, b"0")),
            Self::Join(namespace) => kernel.setns(namespace.fd, namespace.kind.flag()),
            Self::Unshare(flags) => kernel.unshare(*flags),
            Self::SetClocks(offsets) => child.write_proc(c"self/timens_offsets", offsets.as_bytes()),
            Self::NewSession => kernel.setsid(),
            Self::NewKeyring => match kernel.new_keyring() {
                // A kernel without keyrings, or whose filter for us forbids them, has none to share.
                Err(Errno::NOSYS) => Ok(()),
                other => other,
            },
            Self::SetHostName(name) => kernel.sethostname(name.as_bytes()),
            Self::SetDomainName(name) => kernel.setdomainname(name.as_bytes()),
            Self::LoopbackUp => kernel.loopback_up(),
            Self::SetPropagation(propagation) => namespaces::set_propagation(kernel, *propagation),
            Self::EnterRoot(root) => root.carry_out(child),
            Self::Mount(mount) => mount.carry_out(child),
            Self::MountCgroups(mounts) => mounts.carry_out(child),
            Self::MakeNode(node) => node.carry_out(child),
            Self::Link { target, place } => devices::link(target, place, child),
            Self::OpenConsole(console) => console.carry_out(child),
            Self::Hook(hook) => hook.carry_out(child),
            Self::ReadOnlyRoot => mounts::make_root_read_only(child),
            Self::Mask(place) => rootfs::mask(place, child),
            Self::MakeReadOnly(place) => rootfs::make_read_only(place, child),
            Self::SetKernelParameter(path, value) => child.write_proc(path, value.as_bytes()),
            Self::PivotRoot => rootfs::pivot(child),
            Self::SetRootPropagation(propagation) => kernel.mount_setattr(
                child.root,
                false,
                MountAttributes { propagation: *propagation, ..MountAttributes::default() },
            ),
            Self::SetLimit { resource, soft, hard, .. } => kernel.setrlimit(*resource, *soft, *hard),
            Self::SetOomScore(score) => child.write_proc(c"self/oom_score_adj", score.as_bytes()),
            Self::SetPersonality(persona) => kernel.personality(*persona),
            Self::SetScheduler(attributes) => kernel.sched_setattr(attributes),
            Self::SetIoPriority(value) => kernel.ioprio_set(*value),
            Self::NoNewPrivileges => kernel.prctl(Prctl::NoNewPrivileges),
            Self::LoadFilter(program) => kernel.seccomp(program.flags, &program.instructions),
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
            Self::ChangeDirectory(path) => namespaces::enter_directory(kernel, path),
            Self::Hold(fd) => child.report.hold(kernel, *fd),
            Self::CloseFrom { first, except } => close_from(kernel, *first, except),
            Self::DefaultSignals => kernel.default_signals(),
        }
    }
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

impl Operation {
    /// What it means that the kernel refused this step: in words, with what to do where there is something to do.
    ///
    /// `detail` is what the step added to the error number: a hook's exit code.
    pub fn explain(&self, errno: Errno, detail: u32) -> Error {
        if let Self::Hook(hook) = self {
            return hook.explain(errno, detail);
        }
        let error = Error::machine(self, errno);
        match (self, errno) {
            (_, Errno::CANCELED) => Error::new(Kind::State, "the start was given up"),
            (Self::EnterRoot(EnterRoot::Folder { .. }), Errno::NOENT) => {
                error.help("unpack the image there, or give another root with `--root`")
            }
            (Self::EnterRoot(EnterRoot::Overlay { .. }), Errno::PERM | Errno::NODEV | Errno::INVAL) => {
                error.help("this kernel or user may not mount an overlay; `jobc doctor` says more")
            }
            (Self::Mount(Mount { source: mounts::Source::Bind { path, .. }, .. }), Errno::NOENT) => {
                error.help(format!("make `{}`, or remove the mount", path.to_string_lossy()))
            }
            (Self::Mount(mount), Errno::LOOP) if mount.place.no_links => error.help(
                "the image has a symbolic link there, and what is mounted on it would not be where it seems",
            ),
            (Self::Mount(_), Errno::NOTDIR) => {
                error.help("one of source and destination is a folder, the other a file")
            }
            (Self::Mount(_), Errno::ROFS) => {
                error.help("make the destination in the image, which is read-only here")
            }
            (Self::OpenConsole(_), Errno::NOENT) => {
                error.help("a terminal needs a `devpts` mount at /dev/pts")
            }
            (Self::SetLimit { .. }, Errno::PERM) => error.help(
                "the limit is above this machine's hard limit and CAP_SYS_RESOURCE is missing; ask for less",
            ),
            (Self::ChangeDirectory(_), Errno::XDEV) => {
                Error::new(Kind::Machine, "the working directory is outside the container's root")
            }
            (Self::ChangeDirectory(path), Errno::NOENT) => {
                let path = path.to_string_lossy();
                Error::new(Kind::Machine, format!("the working directory `{path}` is not there"))
                    .help("make it in the image, or set another `cwd`")
            }
            (Self::LoadFilter(_), Errno::ACCESS) => {
                error.help("set `noNewPrivileges`, or give CAP_SYS_ADMIN")
            }
            _ => error,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |text: &CString| text.to_string_lossy().into_owned();
        match self {
            Self::EndWithParent(true) => f.write_str("end when the parent ends"),
            Self::EndWithParent(false) => f.write_str("live on when the parent ends"),
            Self::NotDumpable => f.write_str("let no other process look into this one"),
            Self::Wait(gate) => write!(f, "wait for the parent to {gate}"),
            Self::MapIds(files) => write!(f, "map {files}"),
            Self::TakeIds { uid, gid } => write!(f, "take user {uid} and group {gid} of the user namespace"),
            Self::JoinCgroups(_) => f.write_str("join the control groups of version 1"),
            Self::Join(join) => write!(f, "join the {} namespace {}", join.kind, join.path),
            Self::Unshare(flags) => write!(f, "begin new namespaces: {}", namespaces::names(*flags)),
            Self::SetClocks(offsets) => {
                write!(f, "set the clocks to {}", text(offsets).trim().replace('\n', ", "))
            }
            Self::NewSession => f.write_str("begin a session"),
            Self::NewKeyring => f.write_str("begin a session keyring"),
            Self::SetHostName(name) => write!(f, "set the host name to `{}`", text(name)),
            Self::SetDomainName(name) => write!(f, "set the domain name to `{}`", text(name)),
            Self::LoopbackUp => f.write_str("bring the interface `lo` up"),
            Self::SetPropagation(propagation) => {
                write!(f, "make every mount {} here", mounts::propagation_name(*propagation))
            }
            Self::EnterRoot(EnterRoot::Folder { path }) => write!(f, "take `{}` as the root", text(path)),
            Self::EnterRoot(EnterRoot::Current) => f.write_str("take the container's root"),
            Self::EnterRoot(EnterRoot::Overlay { lower, size, .. }) => {
                write!(f, "take `{}` under a tmpfs", text(lower))?;
                if let Some(size) = size {
                    write!(f, " of {} bytes", text(size))?;
                }
                f.write_str(" as the root")
            }
            Self::Mount(mount) => write!(f, "{mount}"),
            Self::MountCgroups(mounts) => write!(f, "{mounts}"),
            Self::MakeNode(node) => write!(f, "{node}"),
            Self::Link { target, place } => write!(f, "link `/{}` to `{}`", text(&place.path), text(target)),
            Self::OpenConsole(_) => f.write_str("open the terminal"),
            Self::Hook(hook) => write!(f, "{hook}"),
            Self::ReadOnlyRoot => f.write_str("make the root read-only"),
            Self::Mask(place) => write!(f, "hide `/{}`", text(&place.path)),
            Self::MakeReadOnly(place) => write!(f, "make `/{}` read-only", text(&place.path)),
            Self::SetKernelParameter(path, value) => {
                write!(f, "write `{}` to `/proc/{}`", text(value), text(path))
            }
            Self::PivotRoot => f.write_str("make it `/`, and let go of the machine's files"),
            Self::SetRootPropagation(propagation) => {
                write!(f, "make the root {}", mounts::propagation_name(*propagation))
            }
            Self::SetLimit { name, soft, hard, .. } => write!(f, "set {name} to {soft} (at most {hard})"),
            Self::SetOomScore(score) => write!(f, "set the out-of-memory score to {}", text(score)),
            Self::SetPersonality(persona) => write!(f, "set the execution domain to {persona:#x}"),
            Self::SetScheduler(_) => f.write_str("set the scheduling policy"),
            Self::SetIoPriority(value) => {
                write!(f, "set the I/O priority to class {}, {}", value >> 13, value & 0x1fff)
            }
            Self::NoNewPrivileges => f.write_str("give up gaining privileges"),
            Self::LoadFilter(program) => {
                write!(f, "load a filter of {} instructions", program.instructions.len())
            }
            Self::BecomeUser { uid, gid, groups } => {
                write!(f, "become user {uid}, group {gid}")?;
                match groups.as_deref() {
                    Some([]) => f.write_str(", no further groups"),
                    Some(groups) => write!(f, ", further groups {groups:?}"),
                    None => f.write_str(", groups as they are"),
                }
            }
            Self::SetCapabilities(sets) => write!(f, "{sets}"),
            Self::DropBounding(dropped) => write!(f, "drop {} capabilities for good", dropped.len()),
            Self::SetUmask(mask) => write!(f, "set the file mode mask to {mask:04o}"),
            Self::ChangeDirectory(path) => write!(f, "go to `{}`", text(path)),
            Self::Hold(_) => f.write_str("wait for the start"),
            Self::CloseFrom { first, .. } => write!(f, "close descriptors from {first} on"),
            Self::DefaultSignals => f.write_str("take signals as a fresh program does"),
        }
    }
}

#[cfg(test)]
mod tests;
