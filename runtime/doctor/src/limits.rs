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
        run: |machine| limit(machine, "Max locked memory", "memlock", 64 << 20),
    },
];

/// The hard limit of a row of /proc/self/limits, held against what programs usually want.
fn limit(machine: &dyn Host, row: &str, name: &str, usual: u64) -> CheckResult {
    let limits = machine.read("/proc/self/limits").unwrap_or_default();
    let values = limits.lines().find_map(|line| line.strip_prefix(row));
    let mut values = values.unwrap_or_default().split_whitespace();
    let (Some(soft), Some(hard)) = (values.next(), values.next()) else {
        return CheckResult::missing(format!("no `{row}` in /proc/self/limits"));
    };
    let words = if soft == hard { format!("at most {hard}") } else { format!("{soft}, at most {hard}") };
    let words = if name == "memlock" && hard != "unlimited" { format!("{words} bytes") } else { words };
    if hard == "unlimited" || hard.parse().is_ok_and(|hard: u64| hard >= usual) {
        return CheckResult::ok(words);
    }
    let unit = if name == "memlock" { usual >> 10 } else { usual };
    CheckResult::limited(words).fix(format!(
        "echo '* - {name} {unit}' >/etc/security/limits.d/60-jobc.conf, then log in again; a service: {}={usual}",
        match name {
            "nofile" => "LimitNOFILE",
            "nproc" => "LimitNPROC",
            _ => "LimitMEMLOCK",
        }
    ))
}
