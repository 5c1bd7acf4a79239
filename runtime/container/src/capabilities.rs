//! Capabilities of the container's process: what config.json names, as the kernel's bit sets.
//!
//! A capability that this host's kernel does not know is left out, as the OCI runtime specification requires;
//! [`CapabilitySets::limit_to`] also leaves out those that this process does not have itself. Sets that contradict each
//! other under the rules of capabilities(7) are refused here, where the field can still be named, and not by an `EPERM`
//! inside the container.

use std::sync::OnceLock;

use linux_raw_sys::general as kernel;
use oci_spec::runtime::{Capabilities, Capability, LinuxCapabilities};

use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::host::ProcessStatus;
use jobc_sys::kernel_file;

#[cfg(test)]
mod tests;

/// The place of the sets in config.json.
const CAPABILITIES_POINTER: &str = "/process/capabilities";

/// The five sets of a process: bit n of each is the capability with number n (capabilities(7)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CapabilitySets {
    /// The limit for this process and its children.
    pub bounding: u64,
    /// The capabilities used in permission checks.
    pub effective: u64,
    /// The capabilities that can become effective.
    pub permitted: u64,
    /// The capabilities kept across `execve` of a file that has them as inheritable.
    pub inheritable: u64,
    /// The capabilities that survive `execve` of a file without file capabilities.
    pub ambient: u64,
}

impl CapabilitySets {
    /// The sets of config.json, limited to capabilities that this host's kernel knows. A missing set is empty.
    ///
    /// # Errors
    /// [`Kind::Config`] if effective is not a subset of permitted, or inheritable not a subset of bounding. Ambient
    /// capabilities that are not permitted and inheritable stay in the set: `runc spec` writes them, so they are not
    /// worth a warning, and they never had an effect; see [`Self::ineffective_ambient`].
    pub fn of(capabilities: &LinuxCapabilities) -> Result<Self> {
        let bits = |set: &Option<Capabilities>| {
            set.iter().flatten().fold(0, |bits, capability| bits | 1_u64 << number(*capability))
        };
        let mut sets = Self {
            bounding: bits(capabilities.bounding()),
            effective: bits(capabilities.effective()),
            permitted: bits(capabilities.permitted()),
            inheritable: bits(capabilities.inheritable()),
            ambient: bits(capabilities.ambient()),
        };
        // The kernel knows what this process can have; only other capabilities need a check.
        if sets.all() & !ProcessStatus::of_this_process()?.bounding != 0 {
            sets = sets.limit_to(kernel_capabilities()?);
        }
        for (set, bits, other, allowed) in [
            ("effective", sets.effective, "permitted", sets.permitted),
            ("inheritable", sets.inheritable, "bounding", sets.bounding),
        ] {
            if bits & !allowed != 0 {
                let names = names(bits & !allowed).join("`, `");
                let message = format!("`{names}` cannot be {set} without being {other}");
                let help = format!("add it to `{other}`, or remove it from `{set}`");
                return Err(Error::new(Kind::Config, message)
                    .at(format!("{CAPABILITIES_POINTER}/{set}"))
                    .help(help));
            }
        }
        Ok(sets)
    }

    /// The capabilities that any of the sets names.
    fn all(self) -> u64 {
        let Self { bounding, effective, permitted, inheritable, ambient } = self;
        bounding | effective | permitted | inheritable | ambient
    }

    /// The sets limited to what a process that holds `held` can pass on. [`Self::missing_from`] has the rest.
    ///
    /// In a new user namespace a process holds all of them, there.
    #[must_use]
    pub fn limit_to(self, held: u64) -> Self {
        Self {
            bounding: self.bounding & held,
            effective: self.effective & held,
            permitted: self.permitted & held,
            inheritable: self.inheritable & held,
            ambient: self.ambient & held,
        }
    }

    /// The ambient capabilities that the kernel would refuse, since they are not permitted and inheritable too.
    pub fn ineffective_ambient(self) -> u64 {
        self.ambient & !(self.permitted & self.inheritable)
    }

    /// The names of those that a process that holds `held` cannot give, for a warning.
    pub fn missing_from(self, held: u64) -> Vec<&'static str> {
        names(self.all() & !held)
    }
}

/// The capabilities that this host's kernel knows, one bit each; looked up once.
///
/// # Errors
/// [`Kind::Machine`] where /proc has no value: guessing too few would leave some in the bounding set.
pub fn kernel_capabilities() -> Result<u64> {
    const PATH: &str = "/proc/sys/kernel/cap_last_cap";
    static KNOWN: OnceLock<u64> = OnceLock::new();
    if let Some(known) = KNOWN.get() {
        return Ok(*known);
    }
    let mut buffer = [0; 16];
    let text = kernel_file::read(PATH, &mut buffer).ok().and_then(|text| std::str::from_utf8(text).ok());
    let Some(last @ 0..=63) = text.and_then(|text| text.trim().parse::<u32>().ok()) else {
        let message = format!("cannot read from `{PATH}` which capabilities this kernel has");
        return Err(Error::new(Kind::System, message).help("mount /proc"));
    };
    Ok(*KNOWN.get_or_init(|| u64::MAX >> (63 - last)))
}

/// The names of capabilities in the order of their numbers, as config.json writes them.
pub fn names(bits: u64) -> Vec<&'static str> {
    TABLE.iter().filter(|(_, number, _)| bits & 1 << number != 0).map(|(_, _, name)| *name).collect()
}

macro_rules! table {
    ($($variant:ident $constant:ident),* $(,)?) => {
        /// Every capability with its number and name, in the order of the numbers.
        const TABLE: &[(Capability, u32, &str)] =
            &[$((Capability::$variant, kernel::$constant, stringify!($constant))),*];

        /// The number of a capability in the kernel's interface.
        pub fn number(capability: Capability) -> u32 {
            match capability {
                $(Capability::$variant => kernel::$constant,)*
            }
        }
    };
}

table! {
    Chown CAP_CHOWN,
    DacOverride CAP_DAC_OVERRIDE,
    DacReadSearch CAP_DAC_READ_SEARCH,
    Fowner CAP_FOWNER,
    Fsetid CAP_FSETID,
    Kill CAP_KILL,
    Setgid CAP_SETGID,
    Setuid CAP_SETUID,
    Setpcap CAP_SETPCAP,
    LinuxImmutable CAP_LINUX_IMMUTABLE,
    NetBindService CAP_NET_BIND_SERVICE,
    NetBroadcast CAP_NET_BROADCAST,
    NetAdmin CAP_NET_ADMIN,
    NetRaw CAP_NET_RAW,
    IpcLock CAP_IPC_LOCK,
    IpcOwner CAP_IPC_OWNER,
    SysModule CAP_SYS_MODULE,
    SysRawio CAP_SYS_RAWIO,
    SysChroot CAP_SYS_CHROOT,
    SysPtrace CAP_SYS_PTRACE,
    SysPacct CAP_SYS_PACCT,
    SysAdmin CAP_SYS_ADMIN,
    SysBoot CAP_SYS_BOOT,
    SysNice CAP_SYS_NICE,
    SysResource CAP_SYS_RESOURCE,
    SysTime CAP_SYS_TIME,
    SysTtyConfig CAP_SYS_TTY_CONFIG,
    Mknod CAP_MKNOD,
    Lease CAP_LEASE,
    AuditWrite CAP_AUDIT_WRITE,
    AuditControl CAP_AUDIT_CONTROL,
    Setfcap CAP_SETFCAP,
    MacOverride CAP_MAC_OVERRIDE,
    MacAdmin CAP_MAC_ADMIN,
    Syslog CAP_SYSLOG,
    WakeAlarm CAP_WAKE_ALARM,
    BlockSuspend CAP_BLOCK_SUSPEND,
    AuditRead CAP_AUDIT_READ,
    Perfmon CAP_PERFMON,
    Bpf CAP_BPF,
    CheckpointRestore CAP_CHECKPOINT_RESTORE,
}
