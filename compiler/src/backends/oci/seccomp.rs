//! The syscalls that a task may make: the set that the usual container engines allow by default.
//!
//! The names are data in `seccomp/default.json`; the few calls whose arguments matter are here. io_uring is left out,
//! as in Docker since 25 and containerd since 2.0, for its record of kernel vulnerabilities. No architecture is named,
//! so the filter is built for the host's own and the bundle fits any; calls of 32-bit programs are refused. With the
//! five of x86 and Arm, runc and crun took 45 ms longer to start a task; with only the host's, 5 ms.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use indexmap::IndexMap;
use oci_spec::runtime::{
    Capability, LinuxSeccomp, LinuxSeccompAction, LinuxSeccompArg, LinuxSeccompArgBuilder,
    LinuxSeccompOperator, LinuxSyscall,
};
use serde::Deserialize;

use super::capabilities::name;

/// The names of allowed calls.
#[derive(Deserialize)]
struct Table {
    /// Allowed to all, by subject.
    always: IndexMap<String, Vec<String>>,
    /// Allowed together with a capability.
    with: IndexMap<String, Vec<String>>,
}

/// Flags of clone(2) that make namespaces, which only CAP_SYS_ADMIN may.
const NAMESPACE_FLAGS: u64 = 0x7e02_0000;

/// The execution domains that programs request: Linux, Linux with UNAME26, 32-bit, both, and the query value.
const PERSONALITIES: [u64; 5] = [0, 0x0002_0000, 0x0000_0008, 0x0002_0008, 0xffff_ffff];

/// The address family of virtual machine sockets, which reach past the network namespace.
const AF_VSOCK: u64 = 40;

/// The error number of a denied call.
const EPERM: u32 = 1;

/// The error of clone3, whose flags a filter cannot check, so that the C library falls back to clone.
const ENOSYS: u32 = 38;

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    serde_json::from_str(include_str!("seccomp/default.json")).expect("the built-in table is valid")
});

/// The filter of a task with these capabilities.
pub(super) fn filter(held: &[Capability]) -> LinuxSeccomp {
    let mut names: BTreeSet<&str> = TABLE.always.values().flatten().map(String::as_str).collect();
    for capability in held {
        names.extend(TABLE.with.get(&name(*capability)).into_iter().flatten().map(String::as_str));
    }
    let names = names.into_iter().map(str::to_owned).collect();
    let mut calls = vec![call(names, LinuxSeccompAction::ScmpActAllow, None)];
    let socket = argument(AF_VSOCK, LinuxSeccompOperator::ScmpCmpNe);
    calls.push(call(vec!["socket".into()], LinuxSeccompAction::ScmpActAllow, Some(socket)));
    for domain in PERSONALITIES {
        let domain = argument(domain, LinuxSeccompOperator::ScmpCmpEq);
        calls.push(call(vec!["personality".into()], LinuxSeccompAction::ScmpActAllow, Some(domain)));
    }
    if !held.contains(&Capability::SysAdmin) {
        let flags = argument(NAMESPACE_FLAGS, LinuxSeccompOperator::ScmpCmpMaskedEq);
        calls.push(call(vec!["clone".into()], LinuxSeccompAction::ScmpActAllow, Some(flags)));
        let mut clone3 = call(vec!["clone3".into()], LinuxSeccompAction::ScmpActErrno, None);
        clone3.set_errno_ret(Some(ENOSYS));
        calls.push(clone3);
    }
    let mut filter = LinuxSeccomp::default();
    filter
        .set_default_action(LinuxSeccompAction::ScmpActErrno)
        .set_default_errno_ret(Some(EPERM))
        .set_architectures(None)
        .set_syscalls(Some(calls));
    filter
}

fn call(names: Vec<String>, action: LinuxSeccompAction, argument: Option<LinuxSeccompArg>) -> LinuxSyscall {
    let mut call = LinuxSyscall::default();
    call.set_names(names).set_action(action).set_args(argument.map(|argument| vec![argument]));
    call
}

/// A test of the first argument; `MASKED_EQ` asks that none of the value's bits is set.
fn argument(value: u64, op: LinuxSeccompOperator) -> LinuxSeccompArg {
    let builder = LinuxSeccompArgBuilder::default().index(0_usize).value(value).op(op);
    let builder =
        if op == LinuxSeccompOperator::ScmpCmpMaskedEq { builder.value_two(0_u64) } else { builder };
    builder.build().expect("all parts are set")
}
