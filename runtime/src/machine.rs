//! What the steps of a start depend on besides the bundle: this process's rights, and the kernel's reach.

use std::sync::OnceLock;

use rustix::fs::CWD;

use crate::error::{Error, Result};
use crate::kernel_file;

/// Facts of this machine and process, read once a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The capabilities that the kernel knows, a bit for each.
    pub known: u64,
    /// The capabilities that this process may use.
    pub held: u64,
    /// The signals that this process ignores, bit n-1 for signal n: what a program inherits unless it is undone.
    pub ignored: u64,
    /// Whether this process is in a user namespace that is not the machine's.
    ///
    /// Container engines of normal users start their runtimes in one, as its root; the kernel makes no device nodes there.
    pub in_user_namespace: bool,
}

impl Machine {
    /// Looks at the machine.
    pub fn look() -> Result<Self> {
        let Status { held, ignored } = Status::of_this_process()?;
        let known = crate::capabilities::known()?;
        Ok(Self { known, held, ignored, in_user_namespace: in_user_namespace() })
    }
}

/// Whether this process is in a user namespace that is not the machine's; looked at once.
pub(crate) fn in_user_namespace() -> bool {
    /// The machine's own, whose number is fixed (`PROC_USER_INIT_INO` of the kernel's include/linux/proc_ns.h).
    const OF_THE_MACHINE: &[u8] = b"user:[4026531837]";
    static IN: OnceLock<bool> = OnceLock::new();
    *IN.get_or_init(|| {
        let mut name = [0; 64];
        match rustix::fs::readlinkat_raw(CWD, c"/proc/self/ns/user", &mut name[..]) {
            Ok(size) => name[..size] != *OF_THE_MACHINE,
            // A kernel without user namespaces has the machine's alone.
            Err(_) => false,
        }
    })
}

/// What the kernel says of this process (proc_pid_status(5)), read once: neither changes while it lives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Status {
    /// The capabilities that it may use: `CapPrm`.
    pub held: u64,
    /// The signals that it ignores: `SigIgn`.
    pub ignored: u64,
}

impl Status {
    /// Reads it.
    ///
    /// # Errors
    /// [`Kind::Machine`](crate::error::Kind::Machine) where /proc is not there.
    pub(crate) fn of_this_process() -> Result<Self> {
        const PATH: &str = "/proc/self/status";
        static READ: OnceLock<Status> = OnceLock::new();
        if let Some(read) = READ.get() {
            return Ok(*read);
        }
        let machine = |errno| Error::machine(format!("read `{PATH}`"), errno);
        let mut buffer = [0; 4096];
        let status = kernel_file::read(PATH, &mut buffer).map_err(machine)?;
        let bits = |name: &str| {
            let mut lines = status.split(|&byte| byte == b'\n');
            let text = lines.find_map(|line| std::str::from_utf8(line.strip_prefix(name.as_bytes())?).ok());
            text.and_then(|text| u64::from_str_radix(text.trim(), 16).ok())
                .ok_or_else(|| machine(rustix::io::Errno::INVAL))
        };
        let read = Self { held: bits("CapPrm:")?, ignored: bits("SigIgn:")? };
        Ok(*READ.get_or_init(|| read))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_what_the_calls_say() {
        let status = Status::of_this_process().expect("/proc");
        let held = rustix::thread::capabilities(None).expect("capget").permitted.bits();
        assert_eq!(status.held, held);
        // The standard library has SIGPIPE ignored, and a test program has handlers of its own for SIGSEGV.
        assert_eq!(status.ignored & (1 << 12 | 1 << 10), 1 << 12);
    }

    /// The machine's own user namespace has all ids, each as itself (user_namespaces(7)).
    #[test]
    fn the_machines_user_namespace_is_known_by_its_number() {
        let map = std::fs::read_to_string("/proc/self/uid_map").expect("/proc");
        let all = map.split_ascii_whitespace().eq(["0", "0", "4294967295"]);
        assert_eq!(in_user_namespace(), !all);
    }
}
