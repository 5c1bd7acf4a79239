//! The features of this runtime, as the OCI runtime specification's features structure.
//!
//! Each list has one source: the properties of config.json come from the table in [`crate::config::support`], the mount
//! options from their table. It lists what the runtime supports; `jobc doctor` shows what this host supports.

use serde_json::{Value, json};

use crate::config::support::{PROPERTIES, Support};
use crate::config::{memory_policy, mount_options};
use crate::prepare::KEEP_GROUPS;
use crate::{capabilities, namespaces::Namespace};

/// The architecture whose syscall names a profile uses.
const ARCHITECTURE: &str =
    if cfg!(target_arch = "aarch64") { "SCMP_ARCH_AARCH64" } else { "SCMP_ARCH_X86_64" };

/// The structure of features.md and features-linux.md, as JSON.
pub fn features() -> Value {
    let hooks =
        PROPERTIES.iter().filter_map(|(property, _)| property.strip_prefix("/hooks/")).collect::<Vec<_>>();
    let mut namespaces: Vec<String> = Namespace::ALL.iter().map(ToString::to_string).collect();
    namespaces.sort_unstable();
    json!({
        "ociVersionMin": "1.0.0",
        "ociVersionMax": "1.3.0",
        "hooks": hooks,
        "mountOptions": mount_options::supported().collect::<Vec<_>>(),
        "linux": {
            "namespaces": namespaces,
            "capabilities": capabilities::names(u64::MAX),
            "cgroup": {"v1": true, "v2": true, "systemd": true, "systemdUser": true, "rdma": true},
            "seccomp": {
                "enabled": true,
                "actions": [
                    "SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO", "SCMP_ACT_KILL", "SCMP_ACT_KILL_PROCESS",
                    "SCMP_ACT_KILL_THREAD", "SCMP_ACT_LOG", "SCMP_ACT_NOTIFY", "SCMP_ACT_TRACE", "SCMP_ACT_TRAP"
                ],
                "operators": [
                    "SCMP_CMP_EQ", "SCMP_CMP_GE", "SCMP_CMP_GT", "SCMP_CMP_LE", "SCMP_CMP_LT",
                    "SCMP_CMP_MASKED_EQ", "SCMP_CMP_NE"
                ],
                "archs": [ARCHITECTURE],
                "knownFlags": [
                    "SECCOMP_FILTER_FLAG_LOG", "SECCOMP_FILTER_FLAG_SPEC_ALLOW", "SECCOMP_FILTER_FLAG_TSYNC",
                    "SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV"
                ],
                "supportedFlags": [
                    "SECCOMP_FILTER_FLAG_LOG", "SECCOMP_FILTER_FLAG_SPEC_ALLOW", "SECCOMP_FILTER_FLAG_TSYNC",
                    "SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV"
                ]
            },
            "apparmor": {"enabled": is_supported("/process/apparmorProfile")},
            "selinux": {"enabled": is_supported("/process/selinuxLabel")},
            "intelRdt": {
                "enabled": is_supported("/linux/intelRdt"),
                "schemata": is_supported("/linux/intelRdt"),
                "monitoring": is_supported("/linux/intelRdt")
            },
            "memoryPolicy": {"modes": memory_policy::mode_names(), "flags": memory_policy::flag_names()},
            "mountExtensions": {"idmap": {"enabled": is_supported("/mounts/*/uidMappings")}},
            "netDevices": {"enabled": is_supported("/linux/netDevices")}
        },
        "annotations": {"dev.jobc.version": env!("CARGO_PKG_VERSION")},
        // `dev.jobc.image` chooses the root, and properties of a unit may be programs to run; a name that ends in a dot
        // represents all that begin with it.
        "potentiallyUnsafeConfigAnnotations": ["dev.jobc.", "org.systemd.property.", KEEP_GROUPS]
    })
}

fn is_supported(property: &str) -> bool {
    PROPERTIES.iter().any(|(row, support)| *row == property && matches!(support, Support::Supported(_)))
}

#[cfg(test)]
mod tests;
