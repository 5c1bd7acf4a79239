//! Linux capabilities of a task: the usual engines' set, with what the role adds and drops.

use jobc_schema::plan::RolePlan;
use oci_spec::runtime::{Capabilities, Capability, LinuxCapabilities};

use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::suggest;

/// The default capabilities in Docker, containerd and CRI-O, in the order of the kernel's numbers.
const DEFAULT_CAPABILITIES: [Capability; 14] = [
    Capability::Chown,
    Capability::DacOverride,
    Capability::Fowner,
    Capability::Fsetid,
    Capability::Kill,
    Capability::Setgid,
    Capability::Setuid,
    Capability::Setpcap,
    Capability::NetBindService,
    Capability::NetRaw,
    Capability::SysChroot,
    Capability::Mknod,
    Capability::AuditWrite,
    Capability::Setfcap,
];

/// All of capabilities(7), in the order of their numbers.
const ALL: [Capability; 41] = [
    Capability::Chown,
    Capability::DacOverride,
    Capability::DacReadSearch,
    Capability::Fowner,
    Capability::Fsetid,
    Capability::Kill,
    Capability::Setgid,
    Capability::Setuid,
    Capability::Setpcap,
    Capability::LinuxImmutable,
    Capability::NetBindService,
    Capability::NetBroadcast,
    Capability::NetAdmin,
    Capability::NetRaw,
    Capability::IpcLock,
    Capability::IpcOwner,
    Capability::SysModule,
    Capability::SysRawio,
    Capability::SysChroot,
    Capability::SysPtrace,
    Capability::SysPacct,
    Capability::SysAdmin,
    Capability::SysBoot,
    Capability::SysNice,
    Capability::SysResource,
    Capability::SysTime,
    Capability::SysTtyConfig,
    Capability::Mknod,
    Capability::Lease,
    Capability::AuditWrite,
    Capability::AuditControl,
    Capability::Setfcap,
    Capability::MacOverride,
    Capability::MacAdmin,
    Capability::Syslog,
    Capability::WakeAlarm,
    Capability::BlockSuspend,
    Capability::AuditRead,
    Capability::Perfmon,
    Capability::Bpf,
    Capability::CheckpointRestore,
];

/// A name in the job file: one capability, or all.
enum CapabilityName {
    All,
    One(Capability),
}

/// The capabilities of a role's tasks, in the order of the kernel's numbers.
///
/// As with the usual engines: `drop` wins over `add`, but what `add` names comes back after `drop: [ALL]`.
pub(super) fn task_capabilities(role: &RolePlan) -> Vec<Capability> {
    if role.security.privileged {
        return ALL.to_vec();
    }
    let Some(wanted) = &role.security.capabilities else { return DEFAULT_CAPABILITIES.to_vec() };
    let (add_all, add) = read(&wanted.add);
    let (drop_all, drop) = read(&wanted.drop);
    let keep = |capability: &Capability| {
        let base = !drop_all && (add_all || DEFAULT_CAPABILITIES.contains(capability));
        (base || add.contains(capability)) && !drop.contains(capability)
    };
    ALL.into_iter().filter(keep).collect()
}

/// Reports unknown capability names.
pub(super) fn check_names(role: &RolePlan, sink: &mut Sink) {
    let Some(wanted) = &role.security.capabilities else { return };
    let at = role.at().keys(["security", "capabilities"]);
    for (key, names) in [("add", &wanted.add), ("drop", &wanted.drop)] {
        for (number, written) in names.iter().enumerate() {
            if parse(written).is_none() {
                sink.push(unknown(written).at(&at.key(key).index(number), ""));
            }
        }
    }
}

fn unknown(written: &str) -> Diagnostic {
    let known: Vec<String> = ALL.iter().map(ToString::to_string).collect();
    let near = suggest::nearest(&bare(written), known.iter().map(String::as_str).chain(["ALL"]));
    let finding =
        Diagnostic::error(codes::UNKNOWN_LINUX_CAPABILITY, format!("unknown Linux capability `{written}`"));
    match near {
        Some(near) => finding.note(format!("write `{near}`")),
        None => finding.note("write a name from capabilities(7), such as `IPC_LOCK`, or `ALL`"),
    }
}

fn read(names: &[String]) -> (bool, Vec<Capability>) {
    let mut all = false;
    let mut found = vec![];
    for name in names {
        match parse(name) {
            Some(CapabilityName::All) => all = true,
            Some(CapabilityName::One(capability)) => found.push(capability),
            None => {}
        }
    }
    (all, found)
}

fn parse(written: &str) -> Option<CapabilityName> {
    let bare = bare(written);
    if bare == "ALL" {
        return Some(CapabilityName::All);
    }
    bare.parse().ok().map(CapabilityName::One)
}

/// The name in capitals, without `CAP_`.
fn bare(written: &str) -> String {
    let upper = written.to_ascii_uppercase();
    upper.strip_prefix("CAP_").map(str::to_owned).unwrap_or(upper)
}

/// The name as the kernel's headers spell it.
pub(super) fn name(capability: Capability) -> String {
    format!("CAP_{capability}")
}

/// The capability sets of a process.
///
/// Ambient and inheritable sets stay empty, so that programs of other users do not inherit the capabilities of root. A
/// user known not to be root only gets the bounding set, which is what execve(2) would leave.
pub(super) fn sets(held: &[Capability], uid: u32) -> LinuxCapabilities {
    let all: Capabilities = held.iter().copied().collect();
    let effective = if uid == 0 { all.clone() } else { Capabilities::default() };
    let mut sets = LinuxCapabilities::default();
    sets.set_bounding(Some(all))
        .set_effective(Some(effective.clone()))
        .set_permitted(Some(effective))
        .set_inheritable(Some(Capabilities::default()))
        .set_ambient(Some(Capabilities::default()));
    sets
}
