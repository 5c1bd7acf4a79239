//! Other OCI runtimes, which can run the same bundles.

use super::distribution::{Distribution, Package};
use super::{Check, Found, Machine, Need};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "runtime.runc",
        purpose: "running the same bundle with runc",
        need: Need::Nobody(""),
        look: |machine| runtime(machine, "runc", Some(&Package::same("runc"))),
    },
    Check {
        name: "runtime.crun",
        purpose: "running the same bundle with crun",
        need: Need::Nobody(""),
        look: |machine| runtime(machine, "crun", Some(&Package::same("crun"))),
    },
    Check {
        name: "runtime.youki",
        purpose: "running the same bundle with youki",
        need: Need::Nobody(""),
        look: |machine| runtime(machine, "youki", None),
    },
    Check {
        name: "runtime.nvidia-container-runtime",
        purpose: "running the same bundle with NVIDIA's own runtime",
        need: Need::Nobody(""),
        look: |machine| runtime(machine, "nvidia-container-runtime", None),
    },
];

fn runtime(machine: &dyn Machine, name: &str, package: Option<&Package>) -> Found {
    let Some(path) = machine.program(name) else {
        let found = Found::missing(format!("no `{name}`"));
        return match package {
            Some(package) => found.fix(Distribution::of(machine).install(package)),
            None => found,
        };
    };
    match machine.ask(&path, &["--version"]) {
        Ok(version) => Found::ok(format!("{path}: {version}")),
        Err(why) => Found::limited(format!("{path}, which does not tell its version: {why}")),
    }
}
