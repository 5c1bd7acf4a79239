//! The facts that a start depends on besides the bundle: this process's rights, and the kernel's reach.

use std::sync::OnceLock;

use linux_raw_sys::general::CAP_SYS_ADMIN;
use rustix::fs::{CWD, StatVfsMountFlags, statvfs};

use crate::error::{Error, Result};
use crate::kernel_file;

/// Facts of this host and process, read once a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// The capabilities that this process may use, a bit for each.
    pub permitted: u64,
    /// The capabilities that a process made by this one could ever have, while it is in the same user namespace.
    pub bounding: u64,
    /// The signals that this process ignores, bit n-1 for signal n. Programs inherit them unless they are reset.
    pub ignored_signals: u64,
    /// Whether this process is in a user namespace that is not the host's.
    ///
    /// Container engines of unprivileged users start their runtimes in one, as its root; the kernel makes no device
    /// nodes there.
    pub in_user_namespace: bool,
    /// The user and the group of this process if it has no others: then changing to them has no effect.
    pub only_ids: Option<(u32, u32)>,
}

impl Host {
    /// Looks at the host.
    pub fn read() -> Result<Self> {
        let ProcessStatus { permitted: held, bounding, ignored_signals: ignored, only_ids: alone_as, .. } =
            ProcessStatus::of_this_process()?;
        Ok(Self {
            permitted: held,
            bounding,
            ignored_signals: ignored,
            in_user_namespace: in_user_namespace(),
            only_ids: alone_as,
        })
    }
}

/// Whether this process is in a user namespace that is not the host's; read once.
pub fn in_user_namespace() -> bool {
    /// The host's own, whose number is fixed (`PROC_USER_INIT_INO` of the kernel's include/linux/proc_ns.h).
    const INITIAL_NAMESPACE: &[u8] = b"user:[4026531837]";
    static IN: OnceLock<bool> = OnceLock::new();
    *IN.get_or_init(|| {
        let mut name = [0; 64];
        match rustix::fs::readlinkat_raw(CWD, c"/proc/self/ns/user", &mut name[..]) {
            Ok(size) => name[..size] != *INITIAL_NAMESPACE,
            // A kernel without user namespaces has only the host's.
            Err(_) => false,
        }
    })
}

/// Whether this process can only start containers in their own user namespaces; read once.
///
/// So if it lacks CAP_SYS_ADMIN, as every user but root does, and root in most containers. Also if it has it in a
/// container with read-only cgroups: there only a user namespace protects the host's devices from inner containers.
pub fn needs_user_namespace() -> bool {
    static NEEDS: OnceLock<bool> = OnceLock::new();
    *NEEDS.get_or_init(|| match ProcessStatus::of_this_process() {
        Ok(status) if status.permitted & 1 << CAP_SYS_ADMIN == 0 => true,
        Ok(_) => !in_user_namespace() && cgroups_are_read_only(),
        Err(_) => !rustix::process::geteuid().is_root(),
    })
}

/// Whether the hierarchy that device rules are written to is mounted read-only.
fn cgroups_are_read_only() -> bool {
    // The directory of cgroup v1 hierarchies is read-only itself on many hosts.
    ["/sys/fs/cgroup/devices", "/sys/fs/cgroup/cgroup.controllers"]
        .into_iter()
        .find_map(|path| statvfs(path).ok())
        .is_some_and(|hierarchy| hierarchy.f_flag.contains(StatVfsMountFlags::RDONLY))
}

/// The kernel's status of this process (proc_pid_status(5)), read once: jobc changes none of it for itself.
#[derive(Clone, Copy, Debug)]
pub struct ProcessStatus {
    /// The user who started it: the first id of `Uid`.
    pub uid: u32,
    /// Its user and its group, where all four ids of `Uid` are the one, all of `Gid` the other, and `Groups` is empty.
    pub only_ids: Option<(u32, u32)>,
    /// The capabilities that it may use: `CapPrm`.
    pub permitted: u64,
    /// The effective ones, usually the same: `CapEff`.
    pub effective: u64,
    /// Those that it could ever have: `CapBnd`.
    pub bounding: u64,
    /// The signals that it ignores: `SigIgn`.
    pub ignored_signals: u64,
    /// Whether its syscalls are filtered: `Seccomp` is 2.
    pub has_filter: bool,
}

impl ProcessStatus {
    /// Reads it.
    ///
    /// # Errors
    /// [`Kind::System`](crate::error::Kind::System) where /proc does not exist.
    pub fn of_this_process() -> Result<Self> {
        const PATH: &str = "/proc/self/status";
        static READ: OnceLock<ProcessStatus> = OnceLock::new();
        if let Some(read) = READ.get() {
            return Ok(*read);
        }
        let machine = |errno| Error::system(format!("read `{PATH}`"), errno);
        let mut buffer = [0; 4096];
        let status = kernel_file::read(PATH, &mut buffer).map_err(machine)?;
        let read = Self::parse(status).ok_or_else(|| machine(rustix::io::Errno::INVAL))?;
        Ok(*READ.get_or_init(|| read))
    }

    fn parse(status: &[u8]) -> Option<Self> {
        let field = |name: &str| {
            let mut lines = status.split(|&byte| byte == b'\n');
            lines.find_map(|line| std::str::from_utf8(line.strip_prefix(name.as_bytes())?).ok())
        };
        let bits = |name: &str| u64::from_str_radix(field(name)?.trim(), 16).ok();
        // Real, effective, saved, and that of the file system.
        let ids = |name: &str| -> Option<Vec<u32>> {
            field(name)?.split_ascii_whitespace().map(|id| id.parse().ok()).collect()
        };
        let one = |ids: &[u32]| ids.iter().all(|id| *id == ids[0]).then_some(ids[0]);
        let (users, groups) = (ids("Uid:")?, ids("Gid:")?);
        let uid = *users.first()?;
        groups.first()?;
        let no_others = field("Groups:")?.trim().is_empty();
        Some(Self {
            uid,
            only_ids: one(&users).zip(one(&groups)).filter(|_| no_others),
            permitted: bits("CapPrm:")?,
            effective: bits("CapEff:")?,
            bounding: bits("CapBnd:")?,
            ignored_signals: bits("SigIgn:")?,
            // A kernel without seccomp has no such line.
            has_filter: field("Seccomp:").is_some_and(|mode| mode.trim() == "2"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_what_the_calls_say() {
        let status = ProcessStatus::of_this_process().expect("/proc");
        let held = rustix::thread::capabilities(None).expect("capget").permitted.bits();
        assert_eq!(status.permitted, held);
        assert_eq!(status.uid, rustix::process::getuid().as_raw());
        let ids = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let groups = rustix::process::getgroups().expect("getgroups");
        assert_eq!(status.only_ids.is_some(), groups.is_empty() && status.uid == ids.0);
        assert!(status.only_ids.is_none_or(|alone| alone == ids));
        // The standard library ignores SIGPIPE, and a test program has its own handler for SIGSEGV.
        assert_eq!(status.ignored_signals & (1 << 12 | 1 << 10), 1 << 12);
    }

    #[test]
    fn an_additional_id_or_group_is_detected() {
        let check = |users: &str, groups: &str, further: &str| {
            let status = format!(
                "Name:\tjobc\nUid:\t{users}\nGid:\t{groups}\nGroups:\t{further} \nCapPrm:\t0\nCapEff:\t0\nCapBnd:\t1f\nSigIgn:\t0\n"
            );
            let status = ProcessStatus::parse(status.as_bytes()).expect("all of it is there");
            assert_eq!(status.bounding, 0x1f);
            status.only_ids
        };
        assert_eq!(check("0\t0\t0\t0", "0\t0\t0\t0", ""), Some((0, 0)));
        assert_eq!(check("1000\t1000\t1000\t1000", "100\t100\t100\t100", ""), Some((1000, 100)));
        assert_eq!(check("1000\t0\t0\t0", "100\t100\t100\t100", ""), None, "as of a setuid program");
        assert_eq!(check("0\t0\t0\t0", "0\t0\t5\t0", ""), None, "another saved group");
        assert_eq!(check("0\t0\t0\t0", "0\t0\t0\t0", "27"), None, "a further group");
        assert!(ProcessStatus::parse(b"Name:\tjobc\nUid:\t\n").is_none());
    }

    /// The host's own user namespace has all ids, each as itself (user_namespaces(7)).
    #[test]
    fn the_hosts_user_namespace_is_known_by_its_number() {
        let map = std::fs::read_to_string("/proc/self/uid_map").expect("/proc");
        let all = map.split_ascii_whitespace().eq(["0", "0", "4294967295"]);
        assert_eq!(in_user_namespace(), !all);
    }
}
