//! Describes a step: what it does, and why the kernel may refuse it.

use std::ffi::CString;
use std::fmt;

use rustix::io::Errno;

use super::Operation;
use crate::mounts::{self, Mount};
use crate::namespaces;
use crate::rlimits::own_hard_limit;
use crate::rootfs::EnterRoot;
use crate::trampoline::Failure;
use jobc_sys::error::{Error, Kind};

impl Operation {
    /// Explains why the kernel refused this step, with advice if there is any.
    ///
    /// `detail` is what the step added to the error number: a hook's exit code.
    pub fn explain(&self, errno: Errno, detail: u32) -> Error {
        if let Self::Hook(hook) = self {
            return hook.explain(errno, detail);
        }
        let error = Error::system(self, errno);
        let text = |text: &CString| text.to_string_lossy().into_owned();
        match (self, errno) {
            (_, Errno::CANCELED) => Error::new(Kind::State, "the start was canceled"),
            (Self::EnterRoot(EnterRoot::Directory { .. }), Errno::NOENT) => {
                error.help("unpack the image there, or set another root with `--root`")
            }
            (
                Self::EnterRoot(EnterRoot::Overlay { .. } | EnterRoot::Layers { .. }),
                Errno::PERM | Errno::NODEV | Errno::INVAL,
            ) => error.help("overlay mounts are not allowed for this kernel or user; see `jobc doctor`"),
            (Self::Mount(Mount { source: mounts::Source::Bind { path, .. }, .. }), Errno::NOENT) => {
                error.help(format!("make `{}`, or remove the mount", path.to_string_lossy()))
            }
            (Self::Mount(mount), Errno::LOOP) if mount.target.no_links => {
                error.help("the image has a symbolic link there, so the mount would end up elsewhere")
            }
            (Self::Mount(mount), Errno::XDEV) => Error::new(
                Kind::System,
                format!(
                    "cannot mount at `/{}`: the image's symbolic links lead to /proc, /sys or /dev",
                    text(&mount.target.path)
                ),
            )
            .help("choose another destination, or write the place without links"),
            (Self::Mount(_), Errno::NOTDIR) => {
                error.help("one of source and destination is a directory, the other a file")
            }
            (Self::Mount(_), Errno::ROFS) => {
                error.help("make the destination in the image, which is read-only here")
            }
            (Self::OpenConsole(_), Errno::NOENT) => {
                error.help("a terminal needs a `devpts` mount at /dev/pts")
            }
            (Self::SetLimit { resource, hard, .. }, Errno::PERM) => {
                error.help(match own_hard_limit(*resource) {
                    Some(own) if own < *hard => format!(
                        "the hard limit of the process that starts it is {own}, and more needs CAP_SYS_RESOURCE; ask for {own} or less"
                    ),
                    _ => "the limit is above what this host allows, such as the sysctl `fs.nr_open` for files, or CAP_SYS_RESOURCE is missing; ask for less".to_owned(),
                })
            }
            (Self::ChangeDirectory { .. } | Self::RetryDirectory(_), Errno::XDEV) => {
                Error::new(Kind::System, "the working directory is outside the container's root")
            }
            (Self::ChangeDirectory { path, .. } | Self::RetryDirectory(path), Errno::NOENT) => {
                let path = path.to_string_lossy();
                Error::new(Kind::System, format!("the working directory `{path}` does not exist"))
                    .help("make it in the image, or set another `cwd`")
            }
            (Self::FindProgram(candidates), errno) => {
                let name = candidates.first().map(|path| path.to_string_lossy()).unwrap_or_default();
                // With a search along `PATH`, all candidates end in the same name.
                let name =
                    if candidates.len() > 1 { name.rsplit('/').next().unwrap_or_default() } else { &name };
                Failure::Exec(errno).error(name)
            }
            (Self::SetAffinity(_), Errno::INVAL) => {
                error.help("name CPUs that the host has and `linux.resources.cpu.cpus` allows")
            }
            (Self::SetMemoryPolicy(_), Errno::NOSYS) => error.help("this kernel has no NUMA; remove `memoryPolicy`"),
            (Self::SetMemoryPolicy(_), Errno::INVAL) => error.help(
                "name nodes that the host has and `linux.resources.cpu.mems` allows; /sys/devices/system/node/online lists them",
            ),
            (Self::OpenAttributes(_), Errno::NOENT | Errno::NODEV) => {
                error.help("it needs a procfs at /proc")
            }
            _ => error,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |text: &CString| text.to_string_lossy().into_owned();
        match self {
            Self::SetParentDeathSignal(true) => f.write_str("end when the parent exits"),
            Self::SetParentDeathSignal(false) => f.write_str("keep running when the parent exits"),
            Self::NotDumpable => f.write_str("make this process not dumpable"),
            Self::Wait(gate) => write!(f, "wait for the parent to {gate}"),
            Self::MapIds(files) => write!(f, "map {files}"),
            Self::SetIds { uid, gid } => {
                write!(f, "become user {uid} and group {gid} of the user namespace")
            }
            Self::JoinCgroups(_) => f.write_str("join the cgroup v1 hierarchies"),
            Self::JoinClasses(_) => f.write_str("join the classes of cache and memory bandwidth"),
            Self::JoinNamespace(join) => write!(f, "{join}"),
            Self::SetStreams { .. } => f.write_str("set the standard streams"),
            Self::GiveStreams { owner, files: false } => {
                write!(f, "give pipes that are standard streams to user {owner}")
            }
            Self::GiveStreams { owner, files: true } => {
                write!(f, "give pipes and files that are standard streams to user {owner}")
            }
            Self::Unshare(flags) => write!(f, "create new namespaces: {}", namespaces::flag_names(*flags)),
            Self::SetClocks(offsets) => {
                write!(f, "set the clocks to {}", text(offsets).trim().replace('\n', ", "))
            }
            Self::NewSession => f.write_str("create a session"),
            Self::NewKeyring(None) => f.write_str("create a session keyring"),
            Self::NewKeyring(Some(label)) => {
                write!(f, "create a session keyring with the label `{}`", text(label))
            }
            Self::OpenAttributes(attributes) => write!(f, "{attributes}"),
            Self::SetHostName(name) => write!(f, "set the host name to `{}`", text(name)),
            Self::SetDomainName(name) => write!(f, "set the domain name to `{}`", text(name)),
            Self::LoopbackUp => f.write_str("bring the interface `lo` up"),
            Self::SetPropagation(propagation) => {
                write!(f, "make every mount {} here", mounts::propagation_name(*propagation))
            }
            Self::EnterRoot(EnterRoot::Directory { path }) => write!(f, "use `{}` as the root", text(path)),
            Self::EnterRoot(EnterRoot::Current) => f.write_str("use the container's root"),
            Self::EnterRoot(EnterRoot::Overlay { lower, size, .. }) => {
                write!(f, "use `{}` below a tmpfs", text(lower))?;
                if let Some(size) = size {
                    write!(f, " of {} bytes", text(size))?;
                }
                f.write_str(" as the root")
            }
            Self::EnterRoot(EnterRoot::Layers { links, .. }) => {
                let lowers = links.iter().filter(|(_, name)| name.as_bytes()[0].is_ascii_digit()).count();
                write!(f, "use {lowers} layers below ")?;
                match links.iter().find(|(_, name)| name.as_c_str() == c"upper") {
                    Some((upper, _)) => write!(f, "`{}` as the root", text(upper)),
                    None => f.write_str("a tmpfs as the root"),
                }
            }
            Self::EnterRoot(EnterRoot::Parts { size, directories, links, .. }) => {
                write!(f, "use a tmpfs")?;
                if let Some(size) = size {
                    write!(f, " of {} bytes", text(size))?;
                }
                write!(f, " with {} directories and {} links as the root", directories.len(), links.len())
            }
            Self::SendLayers(_) => f.write_str("hand the writable layers out"),
            Self::Mount(mount) => write!(f, "{mount}"),
            Self::MountCgroups(mounts) => write!(f, "{mounts}"),
            Self::MakeNode(node) => write!(f, "{node}"),
            Self::Link { target, place } => write!(f, "link `/{}` to `{}`", text(&place.path), text(target)),
            Self::OpenConsole(_) => f.write_str("open the terminal"),
            Self::Hook(hook) => write!(f, "{hook}"),
            Self::MakeDirectory(place) => {
                write!(f, "make sure that the directory `/{}` exists", text(&place.path))
            }
            Self::ReadOnlyMount(place) => write!(f, "make the mount at `/{}` read-only", text(&place.path)),
            Self::ReadOnlyRoot(_) => f.write_str("make the root read-only"),
            Self::Mask(place) => write!(f, "hide `/{}`", text(&place.path)),
            Self::MakeReadOnly(place) => write!(f, "make `/{}` read-only", text(&place.path)),
            Self::SetKernelParameter(path, value) => {
                write!(f, "write `{}` to `/proc/{}`", text(value), text(path))
            }
            Self::PivotRoot => f.write_str("make it `/`, and detach the host's files"),
            Self::SetRootPropagation(propagation) => {
                write!(f, "make the root {}", mounts::propagation_name(*propagation))
            }
            Self::SetLimit { name, soft, hard, .. } => write!(f, "set {name} to {soft} (at most {hard})"),
            Self::SetOomScore(score) => write!(f, "set the out-of-memory score to {}", text(score)),
            Self::SetMemoryPolicy(policy) => write!(f, "{policy}"),
            Self::SetPersonality(persona) => write!(f, "set the execution domain to {persona:#x}"),
            Self::SetScheduler(_) => f.write_str("set the scheduling policy"),
            Self::SetAffinity(_) => f.write_str("run on the CPUs of `execCPUAffinity`"),
            Self::SetIoPriority(value) => {
                write!(f, "set the I/O priority to class {}, {}", value >> 13, value & 0x1fff)
            }
            Self::NoNewPrivileges => f.write_str("set no_new_privs"),
            Self::BecomeUser { uid, gid, groups } => {
                write!(f, "become user {uid}, group {gid}")?;
                match groups.as_deref() {
                    Some([]) => f.write_str(", no supplementary groups"),
                    Some(groups) => write!(f, ", supplementary groups {groups:?}"),
                    None => f.write_str(", groups as they are"),
                }
            }
            Self::SetCapabilities(sets) => write!(f, "{sets}"),
            Self::DropBounding(dropped) => {
                write!(f, "drop {} capabilities from the bounding set", dropped.len())
            }
            Self::SetUmask(mask) => write!(f, "set the umask to {mask:04o}"),
            Self::ChangeDirectory { path, .. } => write!(f, "change to the directory `{}`", text(path)),
            Self::RetryDirectory(path) => {
                write!(f, "change to the directory `{}`, if that was denied before", text(path))
            }
            Self::FindProgram(_) => f.write_str("check that the program exists"),
            Self::Hold(_) => f.write_str("wait for the start"),
            Self::CloseFrom { first, .. } => write!(f, "close file descriptors from {first} on"),
            Self::ResetSignals(_) => f.write_str("reset signal handlers and the signal mask"),
        }
    }
}
