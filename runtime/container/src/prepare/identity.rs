//! The identity of the process: user namespace, cgroups, the other namespaces, host name.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsRawFd as _, OwnedFd};

use linux_raw_sys::general::{CLONE_NEWCGROUP, CLONE_NEWIPC, CLONE_NEWTIME};
use oci_spec::runtime::Spec;
use rustix::time::{ClockId, clock_gettime};

use super::steps::{Steps, c_string};
use crate::child::report::Gate;
use crate::classes;
use crate::config::namespace_ownership::is_host_namespace;
use crate::labels;
use crate::namespaces::{IdMapFiles, JoinNamespace, Namespace, flag_names};
use crate::network_devices;
use crate::operation::Operation;
use crate::options::Options;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::host::Host;
use jobc_sys::id_map::IdMaps;
use jobc_sys::syscall::namespace::namespace_flag;

/// Facts about the namespaces for later parts.
#[derive(Debug)]
pub(super) struct Identity {
    /// `CLONE_NEW*` bits for clone3(2).
    pub(super) new_namespaces: u32,
    /// All kinds that are new, or joined and not the host's: the container's own.
    pub(super) own_namespaces: Vec<Namespace>,
    pub(super) joined_before: Vec<JoinNamespace>,
    pub(super) id_maps: Option<IdMaps>,
    /// Whether supplementary groups can be set in the user namespace.
    pub(super) groups_denied: bool,
    /// Whether the process is in a user namespace that is not the host's.
    pub(super) in_user_namespace: bool,
    /// Whether that is one of the container's own.
    pub(super) own_user_namespace: bool,
    pub(super) descriptors: Vec<OwnedFd>,
}

pub(super) fn list(steps: &mut Steps, spec: &Spec, options: &Options, machine: &Host) -> Result<Identity> {
    let linux = spec.linux().as_ref();
    let mut new = Vec::new();
    let mut joins = Vec::new();
    let mut own = Vec::new();
    let mut descriptors = Vec::new();
    for (index, namespace) in
        linux.and_then(|linux| linux.namespaces().as_ref()).into_iter().flatten().enumerate()
    {
        let kind = Namespace::of(namespace.typ());
        match namespace.path().as_ref().filter(|path| !path.as_os_str().is_empty()) {
            None => {
                new.push(kind);
                own.push(kind);
            }
            Some(path) => {
                let place = format!("/linux/namespaces/{index}/path");
                let fd = open(kind, path).map_err(|error| error.at(&place))?;
                joins.push(JoinNamespace { kind, fd: fd.as_raw_fd(), path: format!("`{}`", path.display()) });
                let fd = File::from(fd);
                if !fd.metadata().is_ok_and(|file| is_host_namespace(&file, kind)) {
                    own.push(kind);
                }
                descriptors.push(fd.into());
            }
        }
    }
    joins.sort_by_key(|join| join.kind);
    let new_user = new.contains(&Namespace::User);
    let joined_user = joins.iter().any(|join| join.kind == Namespace::User);

    if options.systemd_cgroup {
        steps.push_at("/linux/cgroupsPath", Operation::Wait(Gate::Cgroup));
    }
    let id_maps = if new_user { Some(IdMaps::of(spec)?) } else { None };
    let mut groups_denied = false;
    let mut attended_maps = None;
    if let Some(maps) = id_maps {
        groups_denied = maps.groups_denied();
        if let Some((uid, gid)) = maps.single() {
            let files = IdMapFiles {
                uid: c_string(uid, "/linux/uidMappings")?,
                gid: c_string(gid, "/linux/gidMappings")?,
                deny_setgroups: groups_denied,
            };
            steps.push_at("/linux/uidMappings", Operation::MapIds(files));
        } else {
            steps.push_at("/linux/uidMappings", Operation::Wait(Gate::IdMaps));
        }
        let (uid, gid) = maps.first();
        steps.push_at("/linux/uidMappings", Operation::SetIds { uid, gid });
        if maps.single().is_none() {
            attended_maps = Some(maps);
        }
    }
    if joined_user {
        // The maps of an existing one are not written again, but they show which ids exist in it.
        let maps = linux.map(IdMaps::read).transpose()?.flatten();
        groups_denied = maps.as_ref().is_some_and(IdMaps::groups_denied);
        // Who joins has none of its ids: what this process makes would belong to no one, and the kernel refuses that.
        let (uid, gid) = maps.map_or((0, 0), |maps| maps.first());
        steps.push_at("/linux/namespaces", Operation::SetIds { uid, gid });
    }
    if !options.without_cgroup {
        steps.push_at("/linux/cgroupsPath", Operation::JoinCgroups(Vec::new()));
    }
    if linux.is_some_and(classes::are_wanted) {
        steps.push_at("/linux/intelRdt", Operation::JoinClasses(Vec::new()));
    }

    if new.contains(&Namespace::Time) {
        check_time_namespace_support(rustix::system::uname().release().to_bytes())?;
    }
    // These take effect from inside: the cgroup must be joined first, the clock changes at execve, and the message
    // queues of an IPC namespace belong to its creator, whose id must be mapped in the user namespace.
    let late = CLONE_NEWCGROUP | CLONE_NEWTIME | if new_user { CLONE_NEWIPC } else { 0 };
    let all = new.iter().fold(0, |all, kind| all | kind.flag());
    let (inside, cloned) = (all & late, all & !late);
    if inside != 0 {
        steps.push_at("/linux/namespaces", Operation::Unshare(inside));
    }
    if let Some(offsets) =
        linux.and_then(|linux| linux.time_offsets().as_ref()).filter(|offsets| !offsets.is_empty())
    {
        steps.push_at("/linux/timeOffsets", Operation::SetClocks(clocks(offsets)?));
    }
    if let Some(score) = spec.process().as_ref().and_then(oci_spec::runtime::Process::oom_score_adj) {
        steps.push_at(
            "/process/oomScoreAdj",
            Operation::SetOomScore(c_string(score.to_string(), "/process/oomScoreAdj")?),
        );
    }
    // Only now: a process that is not dumpable does not own its files below /proc, which earlier steps write.
    steps.push(Operation::NotDumpable);
    let (joined_before, joined_inside): (Vec<JoinNamespace>, Vec<JoinNamespace>) = joins
        .into_iter()
        .partition(|join| matches!(join.kind, Namespace::User | Namespace::Pid | Namespace::Time));
    for join in joined_inside {
        steps.push_at("/linux/namespaces", Operation::JoinNamespace(join));
    }
    steps.push(Operation::NewSession);
    if !options.keep_keyring {
        match labels::keyring_label(spec.process().as_ref())? {
            None => steps.push(Operation::NewKeyring(None)),
            label => steps.push_at("/process/selinuxLabel", Operation::NewKeyring(label)),
        }
    }
    if let Some(name) = spec.hostname().as_ref().filter(|name| !name.is_empty()) {
        steps.push_at("/hostname", Operation::SetHostName(c_string(name.as_str(), "/hostname")?));
    }
    if let Some(name) = spec.domainname().as_ref().filter(|name| !name.is_empty()) {
        steps.push_at("/domainname", Operation::SetDomainName(c_string(name.as_str(), "/domainname")?));
    }
    if new.contains(&Namespace::Network) {
        steps.push_at("/linux/namespaces", Operation::LoopbackUp);
    }
    if spec.linux().as_ref().is_some_and(network_devices::are_wanted) {
        steps.push_at("/linux/netDevices", Operation::Wait(Gate::NetworkDevices));
    }
    Ok(Identity {
        new_namespaces: cloned,
        own_namespaces: own,
        joined_before,
        id_maps: attended_maps,
        groups_denied,
        own_user_namespace: new_user || joined_user,
        in_user_namespace: new_user || joined_user || machine.in_user_namespace,
        descriptors,
    })
}

/// Opens a namespace's file and checks that it is one of that kind.
fn open(kind: Namespace, path: &std::path::Path) -> Result<OwnedFd> {
    use rustix::fs::{Mode, OFlags};
    const NSFS_MAGIC: u64 = 0x6e73_6673;
    let open = || rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let fd = open()
        .map_err(|errno| Error::system(format!("open the {kind} namespace `{}`", path.display()), errno))?;
    let magic = rustix::fs::fstatfs(&fd).map(|stat| u64::try_from(stat.f_type).unwrap_or_default());
    if magic != Ok(NSFS_MAGIC) {
        let message = format!("`{}` is not a namespace", path.display());
        return Err(Error::new(Kind::Config, message)
            .help(format!("give a path such as `/proc/PID/ns/{}`", kind.file())));
    }
    let found = namespace_flag(&fd).map_err(|errno| {
        Error::system(format!("get the type of the namespace `{}`", path.display()), errno)
    })?;
    if found != kind.flag() {
        let message = format!("`{}` is a {} namespace, not a {kind} one", path.display(), flag_names(found));
        return Err(Error::new(Kind::Config, message)
            .help(format!("give a path such as `/proc/PID/ns/{}`", kind.file())));
    }
    Ok(fd)
}

fn clocks(
    offsets: &std::collections::HashMap<String, oci_spec::runtime::LinuxTimeOffset>,
) -> Result<CString> {
    let mut lines = Vec::new();
    for (clock, offset) in offsets {
        let (seconds, nanoseconds) =
            (offset.secs().unwrap_or_default(), offset.nanosecs().unwrap_or_default());
        let now =
            clock_gettime(if clock == "boottime" { ClockId::Boottime } else { ClockId::Monotonic }).tv_sec;
        check_clock_offset(clock, now, seconds)?;
        lines.push(format!("{clock} {seconds} {nanoseconds}\n"));
    }
    lines.sort();
    c_string(lines.concat(), "/linux/timeOffsets")
}

/// Refuses an offset, in seconds, with which a clock would be below zero, or beyond half of what the kernel counts
/// to in nanoseconds (`proc_timens_set_offset` of kernel/time/namespace.c).
fn check_clock_offset(clock: &str, now: i64, seconds: i64) -> Result<()> {
    const MAX_CLOCK_SECONDS: i64 = i64::MAX / 1_000_000_000 / 2;
    if now.checked_add(seconds).is_some_and(|moved| (0..=MAX_CLOCK_SECONDS).contains(&moved)) {
        return Ok(());
    }
    let message = format!("the clock `{clock}` cannot be offset by {seconds} seconds: its value is {now}");
    Err(Error::new(Kind::Config, message)
        .at(format!("/linux/timeOffsets/{clock}/secs"))
        .help(format!("write -{now} to {}", MAX_CLOCK_SECONDS - now)))
}

/// Refuses a time namespace on kernels before 6.1, where a process that leaves its parent's memory by `execve` stays in
/// the parent's (time_namespaces(7); "fs/exec: switch timens when a task gets a new mm").
fn check_time_namespace_support(release: &[u8]) -> Result<()> {
    let release = String::from_utf8_lossy(release);
    let mut numbers =
        release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<u32>().unwrap_or_default());
    let version = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    if version >= (6, 1) {
        return Ok(());
    }
    Err(Error::new(
        Kind::Unsupported,
        format!("a time namespace needs Linux 6.1 or newer, and this is {release}"),
    )
    .at("/linux/namespaces")
    .help("remove the `time` namespace"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_namespace_is_refused_where_it_would_have_no_effect() {
        for (release, allowed) in [
            ("6.1.0-18-amd64", true),
            ("6.18.44", true),
            ("7.0", true),
            ("6.0.19", false),
            ("5.15.0-91-generic", false),
        ] {
            assert_eq!(check_time_namespace_support(release.as_bytes()).is_ok(), allowed, "{release}");
        }
    }

    #[test]
    fn a_clock_is_moved_as_far_as_the_kernel_takes_it() {
        let output =
            |now, seconds| check_clock_offset("boottime", now, seconds).map_err(|error| error.to_string());
        for seconds in [-100, 0, 3600, 4_611_685_918] {
            assert_eq!(output(100, seconds), Ok(()), "{seconds}");
        }
        for seconds in [-101, 4_611_685_919, i64::MAX, i64::MIN] {
            let message = format!(
                "config.json: /linux/timeOffsets/boottime/secs: the clock `boottime` cannot be offset by {seconds} seconds: its value is 100"
            );
            assert_eq!(output(100, seconds), Err(message));
        }
    }

    #[test]
    fn a_namespace_of_another_kind_is_recognized_by_its_name() {
        let own = |file: &str| std::path::PathBuf::from(format!("/proc/self/ns/{file}"));
        for kind in Namespace::ALL {
            assert!(open(kind, &own(kind.file())).is_ok(), "{kind}");
        }
        let error = open(Namespace::Network, &own("uts")).expect_err("another kind");
        assert_eq!(error.message(), "`/proc/self/ns/uts` is a uts namespace, not a network one");
        let error = open(Namespace::Uts, std::path::Path::new("/proc/self/status")).expect_err("a file");
        assert_eq!(error.message(), "`/proc/self/status` is not a namespace");
    }
}
