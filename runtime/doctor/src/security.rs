//! System call filters and security modules.

use super::check::{Check, CheckResult, Need};
use super::host::Host;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "seccomp.filter",
        purpose: "allowing a container only some syscalls",
        need: Need::Everyone,
        run: filter,
    },
    Check {
        name: "seccomp.around",
        purpose: "detecting a seccomp filter of this process itself, as inside another container",
        need: Need::Optional(""),
        run: active_filters,
    },
    Check {
        name: "security.modules",
        purpose: "detecting other security modules that can deny access: AppArmor, SELinux and others",
        need: Need::Optional(""),
        run: modules,
    },
];

/// The actions of seccomp(2) a profile may name.
const ACTIONS: [&str; 8] =
    ["kill_process", "kill_thread", "trap", "errno", "user_notif", "trace", "log", "allow"];

fn filter(machine: &dyn Host) -> CheckResult {
    let Some(actions) = machine.read("/proc/sys/kernel/seccomp/actions_avail") else {
        return CheckResult::missing("no /proc/sys/kernel/seccomp/actions_avail")
            .fix("use a kernel with CONFIG_SECCOMP_FILTER");
    };
    let there: Vec<&str> = actions.split_whitespace().collect();
    let lacking: Vec<&str> = ACTIONS.into_iter().filter(|action| !there.contains(action)).collect();
    if lacking.is_empty() {
        return CheckResult::ok(there.join(", "));
    }
    CheckResult::limited(format!("{}; not {}", there.join(", "), lacking.join(", ")))
        .fix("use a newer kernel")
}

fn active_filters(machine: &dyn Host) -> CheckResult {
    let status = machine.read("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map_or("0", str::trim)
    };
    match field("Seccomp") {
        "2" => {
            let filters = field("Seccomp_filters");
            CheckResult::limited(format!(
                "{filters} seccomp filters are active in this process and its children"
            ))
            .fix("run outside the container this is in, or start that one with seccomp=unconfined")
        }
        "1" => CheckResult::limited("this process is in strict mode"),
        _ => CheckResult::ok("no filter"),
    }
}

fn modules(machine: &dyn Host) -> CheckResult {
    let mut words = vec![];
    if let Some(modules) = machine.read("/sys/kernel/security/lsm") {
        words.push(modules.trim().replace(',', ", "));
    }
    if machine.read("/sys/module/apparmor/parameters/enabled").is_some_and(|on| on.starts_with('Y')) {
        words.push("AppArmor is on".to_owned());
    }
    match machine.read("/sys/fs/selinux/enforce").as_deref().map(str::trim) {
        Some("1") => words.push("SELinux is enforcing".to_owned()),
        Some(_) => words.push("SELinux is permissive".to_owned()),
        None => {}
    }
    CheckResult::ok(if words.is_empty() { "none seen".to_owned() } else { words.join("; ") })
}
