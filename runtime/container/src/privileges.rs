//! Rights of the process: its user, its groups, its capabilities, in the order that loses none too early.
//!
//! First the bounding set, while there is the right to shrink it; then groups, group, user with the capabilities kept
//! over the change; then exactly the sets that config.json names (capabilities(7)).

use std::fmt;

use rustix::io::Errno;

use jobc_sys::syscall::{CapabilityBits, Kernel, Prctl};

/// The capability sets that the program starts with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetCapabilities {
    /// Effective, permitted, inheritable.
    pub bits: CapabilityBits,
    /// The ambient set's capabilities, by number.
    pub ambient: Vec<u32>,
}

impl SetCapabilities {
    /// Sets them.
    pub fn carry_out<K: Kernel>(&self, kernel: &K) -> Result<(), Errno> {
        kernel.capset(self.bits)?;
        // The ambient set never exceeds those two, so it is empty if their intersection is.
        if self.bits.inheritable & self.bits.permitted != 0 {
            kernel.prctl(Prctl::ClearAmbient)?;
        }
        self.ambient.iter().try_for_each(|&capability| kernel.prctl(Prctl::RaiseAmbient(capability)))
    }
}

impl fmt::Display for SetCapabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CapabilityBits { effective, permitted, inheritable } = self.bits;
        write!(
            f,
            "set capabilities: effective {effective:#x}, permitted {permitted:#x}, inheritable {inheritable:#x}"
        )?;
        if self.ambient.is_empty() { Ok(()) } else { write!(f, ", ambient {:?}", self.ambient) }
    }
}

/// Becomes the user, with the permitted capabilities kept until they are set.
pub(crate) fn become_user<K: Kernel>(
    kernel: &K,
    uid: u32,
    gid: u32,
    groups: Option<&[u32]>,
) -> Result<(), Errno> {
    // Only a change from 0 to another user takes them away.
    let changes = uid != 0;
    if changes {
        kernel.prctl(Prctl::KeepCapabilities(true))?;
    }
    if let Some(groups) = groups {
        kernel.setgroups(groups)?;
    }
    kernel.setgid(gid)?;
    kernel.setuid(uid)?;
    if changes { kernel.prctl(Prctl::KeepCapabilities(false)) } else { Ok(()) }
}
