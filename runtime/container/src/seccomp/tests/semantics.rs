//! A profile's action for a call, evaluated rule by rule: slow, and independent of the compiler except for names.

use oci_spec::runtime::{LinuxSeccomp, LinuxSeccompArg, LinuxSeccompOperator, LinuxSyscall};

use super::machine::{Call, NATIVE};
use crate::seccomp::numbers;

pub(super) fn of(profile: &LinuxSeccomp, call: &Call) -> u32 {
    let default = profile.default_action().as_u32(profile.default_errno_ret());
    if call.architecture != NATIVE {
        return 0x8000_0000;
    }
    if cfg!(target_arch = "x86_64") && (0x4000_0000..u32::MAX).contains(&call.number) {
        return 0x8000_0000;
    }
    if cfg!(target_arch = "x86_64") && call.number == u32::MAX {
        return default;
    }
    let rules: Vec<&LinuxSyscall> = profile.syscalls().iter().flatten().collect();
    let newest = rules.iter().flat_map(|rule| rule.names()).filter_map(|name| numbers::number(name)).max();
    if default >> 16 == 5 && newest.is_some_and(|newest| call.number > newest) {
        return 0x0005_0026 /* ENOSYS */;
    }
    let about = |rule: &&LinuxSyscall| {
        let named = rule.names().iter().any(|name| numbers::number(name) == Some(call.number));
        named && rule.action().as_u32(rule.errno_ret()) != default
    };
    let rules: Vec<&LinuxSyscall> = rules.into_iter().filter(about).collect();
    let always = rules.iter().find(|rule| arguments(rule).is_empty());
    let rule = always.or_else(|| rules.iter().find(|rule| applies(arguments(rule), call)));
    rule.map_or(default, |rule| rule.action().as_u32(rule.errno_ret()))
}

fn arguments(rule: &LinuxSyscall) -> &[LinuxSeccompArg] {
    rule.args().as_deref().unwrap_or_default()
}

fn applies(arguments: &[LinuxSeccompArg], call: &Call) -> bool {
    let mut indices: Vec<usize> = arguments.iter().map(LinuxSeccompArg::index).collect();
    indices.sort_unstable();
    let shared = indices.windows(2).any(|pair| pair[0] == pair[1]);
    let mut results = arguments.iter().map(|argument| holds(argument, call.arguments[argument.index()]));
    if shared { results.any(|holds| holds) } else { results.all(|holds| holds) }
}

fn holds(argument: &LinuxSeccompArg, given: u64) -> bool {
    let value = argument.value();
    match argument.op() {
        LinuxSeccompOperator::ScmpCmpNe => given != value,
        LinuxSeccompOperator::ScmpCmpLt => given < value,
        LinuxSeccompOperator::ScmpCmpLe => given <= value,
        LinuxSeccompOperator::ScmpCmpEq => given == value,
        LinuxSeccompOperator::ScmpCmpGe => given >= value,
        LinuxSeccompOperator::ScmpCmpGt => given > value,
        LinuxSeccompOperator::ScmpCmpMaskedEq => given & value == argument.value_two().unwrap_or(0) & value,
    }
}
