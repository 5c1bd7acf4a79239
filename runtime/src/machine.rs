//! What the steps of a start depend on besides the bundle: this process's rights, and the kernel's reach.

use crate::error::{Error, Result};

/// Facts of this machine and process, read once a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The capabilities that the kernel knows, a bit for each.
    pub known: u64,
    /// The capabilities that this process may use.
    pub held: u64,
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
        let in_user_namespace = in_user_namespace();
        Ok(Self { known: crate::capabilities::known()?, held: held.permitted.bits(), in_user_namespace })
    }
}

/// Whether this process is in a user namespace that is not the machine's, which has all ids, each as itself
/// (user_namespaces(7)).
pub(crate) fn in_user_namespace() -> bool {
    std::fs::read_to_string("/proc/self/uid_map")
        .is_ok_and(|map| !map.split_whitespace().eq(["0", "0", "4294967295"]))
}
