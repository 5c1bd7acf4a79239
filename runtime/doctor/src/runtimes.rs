//! Other OCI runtimes, which can run the same bundles.

use super::check::{Check, CheckResult, Need};
use super::distribution::{Distribution, Package};
use super::host::Host;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "runtime.runc",
        purpose: "running the same bundle with runc",
        need: Need::Optional(""),
        run: |machine| runtime(machine, "runc"),
    },
    Check {
        name: "runtime.crun",
        purpose: "running the same bundle with crun",
        need: Need::Optional(""),
        run: |machine| runtime(machine, "crun"),
    },
    Check {
        name: "runtime.youki",
        purpose: "running the same bundle with youki",
        need: Need::Optional(""),
        run: |machine| runtime(machine, "youki"),
    },
    Check {
        name: "runtime.nvidia-container-runtime",
        purpose: "running the same bundle with NVIDIA's own runtime",
        need: Need::Optional(""),
        run: |machine| runtime(machine, "nvidia-container-runtime"),
    },
];

/// How to install a runtime; nothing for an unknown one.
pub fn how_to_get(machine: &dyn Host, name: &str) -> Option<String> {
    Some(match name {
        "runc" => Distribution::of(machine).install(&Package::same("runc")),
        "crun" => Distribution::of(machine).install(&Package::same("crun")),
        "youki" => "install one of its releases; few distributions have a package".to_owned(),
        "nvidia-container-runtime" => {
            "install the package `nvidia-container-toolkit` from NVIDIA's repository".to_owned()
        }
        _ => return None,
    })
}

fn runtime(machine: &dyn Host, name: &str) -> CheckResult {
    let Some(path) = machine.program(name) else {
        return CheckResult::missing(format!("no `{name}`")).fixes(how_to_get(machine, name));
    };
    match machine.run_program(&path, &["--version"]) {
        Ok(version) => CheckResult::ok(format!("{path}: {version}")),
        Err(why) => CheckResult::limited(format!("{path}, whose version is unknown: {why}")),
    }
}
