//! The seccomp filter: config.json's profile as a BPF program.
//!
//! The kernel runs the program at every syscall, over `struct seccomp_data` (seccomp(2)). It first checks the
//! architecture, then finds the call's number among sorted ranges by binary search, so that a profile of 400 calls
//! takes nine comparisons; the kernel caches the decision of calls that depend on their number alone when it loads the
//! program. `seccompiler` has one action for all rules of a filter, which does not fit such profiles, so this is a
//! separate compiler.
//!
//! Beyond the OCI runtime specification ("Seccomp" in its Linux part), profiles mean the same as for runc and
//! libseccomp:
//!
//! * Calls of other architectures, 32-bit ones too, end the process, even if the profile lists them: its names are not
//!   theirs. The host's own architecture is always included.
//! * A rule whose action is the default one has no effect.
//! * The first rule without conditions decides its call; otherwise the first rule whose conditions hold.
//! * All conditions of a rule must hold, unless two of them test the same argument: then one is enough.
//! * Names that this architecture lacks are skipped ([`Program::unknown`]).
//! * If the default is an error number, calls newer than any in the profile return `ENOSYS`: its author did not know
//!   them, and C libraries only fall back on `ENOSYS`.

mod condition;
pub(crate) mod decide;
mod numbers;
mod search;
#[cfg(test)]
mod tests;

use std::path::Path;

use linux_raw_sys::ptrace::{
    BPF_MAXINSNS, BPF_RET, SECCOMP_FILTER_FLAG_LOG, SECCOMP_FILTER_FLAG_NEW_LISTENER,
    SECCOMP_FILTER_FLAG_SPEC_ALLOW, SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, SECCOMP_RET_ACTION_FULL,
    SECCOMP_RET_ERRNO, SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_USER_NOTIF, sock_filter,
};
use oci_spec::runtime::{
    LinuxSeccomp, LinuxSeccompAction as Action, LinuxSeccompArg, LinuxSeccompFilterFlag as Flag, LinuxSyscall,
};

use condition::Condition;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::syscall::CapabilityBits;
use search::{Decision, Range, Rule};

/// The place of the profile in config.json.
const PROFILE_POINTER: &str = "/linux/seccomp";

/// The error number for a call that the kernel does not have.
const ENOSYS: u32 = linux_raw_sys::errno::ENOSYS;

/// The highest error number a syscall can return (`MAX_ERRNO` in the kernel).
const MAX_ERRNO: u32 = 4095;

/// From here on, numbers on x86_64 are those of x32, which shares its architecture's name (`__X32_SYSCALL_BIT`).
const X32_SYSCALL_BIT: u32 = 0x4000_0000;

/// A filter ready for the kernel.
#[derive(Clone, Debug)]
pub struct Program {
    /// Classic BPF over `struct seccomp_data`, at most 4,096 instructions (`BPF_MAXINSNS`).
    pub instructions: Vec<sock_filter>,
    /// Flags of seccomp(2), `SECCOMP_FILTER_FLAG_*`.
    pub flags: u32,
    /// Names in the profile that this architecture, or the kernel headers this was built with, do not have. Their calls
    /// get the default action.
    pub unknown: Vec<String>,
    /// The capabilities to go on with where the right to load it was kept for that alone: without no-new-privileges.
    pub rights_after: Option<CapabilityBits>,
    /// The rights without it: those of the program itself.
    pub rights_without: Option<CapabilityBits>,
}

/// Makes the filter of a profile.
///
/// # Errors
/// [`Kind::Config`] for invalid values, such as a seventh argument, an error number for an action that returns none, or
/// `SCMP_ACT_NOTIFY` without a listener. Each names its place in config.json.
pub fn compile(profile: &LinuxSeccomp) -> Result<Program> {
    if profile.listener_metadata().is_some() && profile.listener_path().is_none() {
        let error = Error::new(Kind::Config, "`listenerMetadata` needs `listenerPath`");
        return Err(error.at(format!("{PROFILE_POINTER}/listenerMetadata")));
    }
    let default =
        action(profile.default_action(), profile.default_errno_ret(), PROFILE_POINTER, "defaultErrnoRet")?;
    let mut table = ActionTable::new(default);
    for (index, call) in profile.syscalls().iter().flatten().enumerate() {
        table.add(call, &format!("{PROFILE_POINTER}/syscalls/{index}"))?;
    }
    let unknown = std::mem::take(&mut table.unknown);
    let instructions = search::program(&table.ranges());
    if instructions.len() > BPF_MAXINSNS as usize {
        let message = format!(
            "the profile makes {} instructions, but the kernel allows at most {BPF_MAXINSNS}",
            instructions.len()
        );
        return Err(Error::new(Kind::Config, message).at(format!("{PROFILE_POINTER}/syscalls")));
    }
    let notifies = instructions.iter().any(|instruction| {
        u32::from(instruction.code) == BPF_RET
            && instruction.k & SECCOMP_RET_ACTION_FULL == SECCOMP_RET_USER_NOTIF
    });
    if notifies {
        check_agent(profile)?;
    }
    Ok(Program {
        instructions,
        flags: flags(profile, notifies),
        unknown,
        rights_after: None,
        rights_without: None,
    })
}

impl Program {
    /// The filter without an agent: calls that it would decide fail with `ENOSYS` (seccomp(2),
    /// `SECCOMP_RET_USER_NOTIF`).
    #[must_use]
    pub fn without_listener(&self) -> Self {
        let listening = SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
        Self { flags: self.flags & !listening, ..self.clone() }
    }

    /// Whether an agent is notified of syscalls: the filter is loaded with a listener.
    pub fn notifies(&self) -> bool {
        self.flags & SECCOMP_FILTER_FLAG_NEW_LISTENER != 0
    }
}

/// The value in a profile; an empty path means none.
pub(crate) fn agent_path(profile: &LinuxSeccomp) -> Option<&Path> {
    profile.listener_path().as_deref().filter(|path| !path.as_os_str().is_empty())
}

/// Checks that a profile whose filter has a listener has the agent's path.
fn check_agent(profile: &LinuxSeccomp) -> Result<()> {
    match agent_path(profile) {
        None => Err(Error::new(Kind::Config, "`SCMP_ACT_NOTIFY` needs `listenerPath`")
            .at(AGENT_POINTER)
            .help("write the path of the agent's socket, or use another action")),
        Some(path) if !path.is_absolute() => {
            Err(Error::new(Kind::Config, format!("`{}` is not an absolute path", path.display()))
                .at(AGENT_POINTER)
                .help("write the absolute path of the agent's socket"))
        }
        Some(_) => Ok(()),
    }
}

/// The field of config.json that names the agent which decides calls.
pub(crate) const AGENT_POINTER: &str = "/linux/seccomp/listenerPath";

/// The flags for seccomp(2). `TSYNC` has no effect here: the program's thread is alone when it begins. The kernel
/// rejects `WAIT_KILLABLE_RECV` without a listener.
fn flags(profile: &LinuxSeccomp, notifies: bool) -> u32 {
    let listener = if notifies { SECCOMP_FILTER_FLAG_NEW_LISTENER } else { 0 };
    profile.flags().iter().flatten().fold(listener, |flags, flag| {
        flags
            | match flag {
                Flag::SeccompFilterFlagLog => SECCOMP_FILTER_FLAG_LOG,
                Flag::SeccompFilterFlagSpecAllow => SECCOMP_FILTER_FLAG_SPEC_ALLOW,
                Flag::SeccompFilterFlagWaitKillableRecv if notifies => SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
                Flag::SeccompFilterFlagTsync | Flag::SeccompFilterFlagWaitKillableRecv => 0,
            }
    })
}

/// The value a filter returns for an action, and its error number where it has one.
fn action(action: Action, errno: Option<u32>, place: &str, errno_field: &str) -> Result<u32> {
    let highest = match action {
        Action::ScmpActErrno => MAX_ERRNO,
        Action::ScmpActTrace => u32::from(u16::MAX),
        _ if errno.is_some() => {
            let error = Error::new(Kind::Config, format!("`{action}` does not return an error number"));
            return Err(error.at(format!("{place}/{errno_field}")).help("omit it, or write SCMP_ACT_ERRNO"));
        }
        _ => return Ok(action.as_u32(None)),
    };
    match errno {
        Some(errno) if errno > highest => {
            let error =
                Error::new(Kind::Config, format!("{errno} is not an error number: the highest is {highest}"));
            Err(error.at(format!("{place}/{errno_field}")))
        }
        errno => Ok(action.as_u32(errno)),
    }
}

/// The profile's action for each number.
struct ActionTable {
    default: u32,
    calls: Vec<CallActions>,
    /// The highest number the profile names.
    newest: Option<u32>,
    unknown: Vec<String>,
}

/// Its action for one number.
#[derive(Clone, Default)]
struct CallActions {
    /// The action of its first rule without conditions.
    always: Option<u32>,
    /// Its rules with conditions, in order.
    rules: Vec<Rule>,
}

impl ActionTable {
    fn new(default: u32) -> Self {
        Self {
            default,
            calls: vec![CallActions::default(); numbers::END as usize],
            newest: None,
            unknown: Vec::new(),
        }
    }

    fn add(&mut self, call: &LinuxSyscall, place: &str) -> Result<()> {
        let action = action(call.action(), call.errno_ret(), place, "errnoRet")?;
        let arguments = call.args().as_deref().unwrap_or_default();
        let mut conditions = Vec::with_capacity(arguments.len());
        for (index, argument) in arguments.iter().enumerate() {
            conditions.push(condition(argument, &format!("{place}/args/{index}"))?);
        }
        for name in call.names() {
            match numbers::number(name) {
                Some(number) => self.rule(number, action, &conditions),
                None => self.unknown.push(name.clone()),
            }
        }
        Ok(())
    }

    fn rule(&mut self, number: u32, action: u32, conditions: &[Condition]) {
        self.newest = self.newest.max(Some(number));
        if action == self.default {
            return;
        }
        let call = &mut self.calls[number as usize];
        if conditions.is_empty() {
            call.always.get_or_insert(action);
        } else if have_common_argument(conditions) {
            let alone = conditions.iter().map(|condition| Rule { conditions: vec![*condition], action });
            call.rules.extend(alone);
        } else {
            call.rules.push(Rule { conditions: conditions.to_vec(), action });
        }
    }

    /// The decisions for all numbers, in order, equal neighbours as one.
    fn ranges(self) -> Vec<Range> {
        let newer = match self.newest {
            Some(newest) if self.default >> 16 == SECCOMP_RET_ERRNO >> 16 => Some(newest + 1),
            _ => None,
        };
        let mut ranges: Vec<Range> = Vec::new();
        let mut push = |start: u32, decision: Decision| {
            if ranges.last().is_none_or(|last| last.decision != decision) {
                ranges.push(Range { start, decision });
            }
        };
        let simple = |action: u32| Decision { rules: Vec::new(), otherwise: action };
        for (number, call) in (0..).zip(self.calls) {
            if Some(number) == newer {
                break;
            }
            push(
                number,
                match call.always {
                    Some(action) => simple(action),
                    None => Decision { rules: call.rules, otherwise: self.default },
                },
            );
        }
        match newer {
            Some(number) => push(number, simple(SECCOMP_RET_ERRNO | ENOSYS)),
            None => push(numbers::END, simple(self.default)),
        }
        if cfg!(target_arch = "x86_64") {
            push(X32_SYSCALL_BIT, simple(SECCOMP_RET_KILL_PROCESS));
            push(u32::MAX, simple(self.default)); // -1, with which a tracer asks the kernel to make no call
        }
        ranges
    }
}

fn condition(argument: &LinuxSeccompArg, place: &str) -> Result<Condition> {
    let Ok(index @ 0..=5) = u32::try_from(argument.index()) else {
        let error = Error::new(
            Kind::Config,
            format!("invalid argument index {}: it must be 0 to 5", argument.index()),
        );
        return Err(error.at(format!("{place}/index")));
    };
    Ok(Condition {
        index,
        operator: argument.op(),
        value: argument.value(),
        second: argument.value_two().unwrap_or_default(),
    })
}

fn have_common_argument(conditions: &[Condition]) -> bool {
    let mut seen = 0_u32;
    conditions.iter().any(|condition| {
        let bit = 1 << condition.index;
        let again = seen & bit != 0;
        seen |= bit;
        again
    })
}
