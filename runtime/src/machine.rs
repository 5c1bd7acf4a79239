//! What the steps of a start depend on besides the bundle: this process's rights, and the kernel's reach.

use std::sync::OnceLock;

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
        let held = rustix::thread::capabilities(None)
            .map_err(|errno| Error::machine("read this process's capabilities", errno))?;
        Ok(Self {
            known: crate::capabilities::known()?,
            held: held.permitted.bits(),
            ignored: ignored_signals()?,
            in_user_namespace: in_user_namespace(),
        })
    }
}

/// Whether this process is in a user namespace that is not the machine's; looked at once.
pub(crate) fn in_user_namespace() -> bool {
    static IN: OnceLock<bool> = OnceLock::new();
    *IN.get_or_init(|| {
        // The machine's own user namespace has all ids, each as itself (user_namespaces(7)); a map has one line there,
        // and at most 340 elsewhere.
        match kernel_file::read("/proc/self/uid_map", &mut [0; 128]) {
            Ok(map) => !map.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).eq([
                &b"0"[..],
                b"0",
                b"4294967295",
            ]),
            Err(errno) => errno == rustix::io::Errno::FBIG,
        }
    })
}

/// The signals that this process ignores (proc_pid_status(5), `SigIgn`).
fn ignored_signals() -> Result<u64> {
    const PATH: &str = "/proc/self/status";
    let machine = |errno| Error::machine(format!("read `{PATH}`"), errno);
    let mut buffer = [0; 4096];
    let status = kernel_file::read(PATH, &mut buffer).map_err(machine)?;
    let mut lines = status.split(|&byte| byte == b'\n');
    let bits = lines.find_map(|line| std::str::from_utf8(line.strip_prefix(b"SigIgn:")?).ok());
    bits.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok())
        .ok_or_else(|| machine(rustix::io::Errno::INVAL))
}
