//! The limits this process starts with, which containers inherit and, without `CAP_SYS_RESOURCE`, cannot exceed
//! (getrlimit(2)).

use super::check::{Check, CheckResult, Need};
use super::host::Host;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "limit.open-files",
        purpose: "data loaders and servers that open thousands of files",
        need: Need::Optional(""),
        run: |machine| limit(machine, "Max open files", "nofile", 65_536),
    },
    Check {
        name: "limit.processes",
        purpose: "programs with many threads",
        need: Need::Optional(""),
        run: |machine| limit(machine, "Max processes", "nproc", 4096),
    },
    Check {
        name: "limit.locked-memory",
        purpose: "pinned memory for GPUs and RDMA",
        need: Need::Optional(""),
        run: |machine| limit(machine, "Max locked memory", "memlock", MEMLOCK_BYTES),
    },
];

/// The sufficient limit on a host without RDMA: the GPU driver pins its memory itself.
const MEMLOCK_BYTES: u64 = 64 << 20;

/// The hard limit of a row of /proc/self/limits, held against what programs usually want.
///
/// RDMA counts every registered buffer as locked memory, so on a host with such devices no number is enough.
fn limit(machine: &dyn Host, row: &str, name: &str, usual: u64) -> CheckResult {
    let limits = machine.read("/proc/self/limits").unwrap_or_default();
    let values = limits.lines().find_map(|line| line.strip_prefix(row));
    let mut values = values.unwrap_or_default().split_whitespace();
    let (Some(soft), Some(hard)) = (values.next(), values.next()) else {
        return CheckResult::missing(format!("no `{row}` in /proc/self/limits"));
    };
    let is_memory = name == "memlock";
    let mut words = if soft == hard { format!("at most {hard}") } else { format!("{soft}, at most {hard}") };
    if is_memory && hard != "unlimited" {
        words += " bytes";
    }
    let rdma = if is_memory { machine.names("/sys/class/infiniband") } else { vec![] };
    if hard == "unlimited" || rdma.is_empty() && hard.parse().is_ok_and(|hard: u64| hard >= usual) {
        return CheckResult::ok(words);
    }
    if let Some(device) = rdma.first() {
        words += &format!("; RDMA buffers of `{device}` are locked memory");
    }
    let (wanted, of_service) = match name {
        "nofile" => (usual.to_string(), format!("LimitNOFILE={usual}")),
        "nproc" => (usual.to_string(), format!("LimitNPROC={usual}")),
        _ => ("unlimited".to_owned(), "LimitMEMLOCK=infinity".to_owned()),
    };
    CheckResult::limited(words).fix(format!(
        "echo '* - {name} {wanted}' >/etc/security/limits.d/60-jobc.conf, then log in again; a service: {of_service}"
    ))
}
