//! Every property of config.json, and how this runtime supports it.
//!
//! The list follows the OCI runtime specification 1.3. A row covers everything below its property, except properties
//! with their own row. A test compares it with the specification's JSON Schema: a property without a decision fails it.

#![allow(clippy::ref_option)] // the getters of the types return references to options

use oci_spec::runtime::{Process, Spec};
use serde::Serialize;

use super::Config;
use jobc_sys::error::{Error, Kind};

/// How a property is supported.
#[derive(Clone, Copy)]
pub enum Support {
    /// It is carried out, by the module of that name.
    Supported(&'static str),
    /// Refused if it requests something: whether it does, what is not supported, and what to do instead.
    Refused(PropertyUse, &'static str, &'static str),
}

/// Whether a configuration uses a property; an empty value does not count.
#[derive(Clone, Copy)]
pub enum PropertyUse {
    /// By the whole.
    Spec(fn(&Spec) -> bool),
    /// By the process.
    Process(fn(&Process) -> bool),
    /// If it is present at all: the types do not have it, so it is among the unknown properties.
    Present,
}

use Support::{Refused, Supported};

const NOT_LINUX: &str = "this runtime supports only Linux containers";
const REMOVE_SECTION_HELP: &str = "remove the section, or run the bundle on that platform";

/// The table: JSON Pointers with `*` for an array's index or an object's key.
#[rustfmt::skip]
pub const PROPERTIES: &[(&str, Support)] = &[
    ("/ociVersion", Supported("config")),
    ("/root/path", Supported("root")),
    ("/root/readonly", Supported("mounts")),
    ("/mounts/*/destination", Supported("rootfs")),
    ("/mounts/*/source", Supported("mounts")),
    ("/mounts/*/type", Supported("mounts")),
    ("/mounts/*/options", Supported("config::mount_options")),
    ("/mounts/*/uidMappings", Supported("mounts::id_mapped")),
    ("/mounts/*/gidMappings", Supported("mounts::id_mapped")),
    ("/process/terminal", Supported("terminal")),
    ("/process/consoleSize", Supported("terminal")),
    ("/process/cwd", Supported("namespaces")),
    ("/process/env", Supported("prepare")),
    ("/process/args", Supported("prepare")),
    ("/process/commandLine", Refused(
        PropertyUse::Process(|process| text(process.command_line())),
        NOT_LINUX, "write `args`",
    )),
    ("/process/user/uid", Supported("user")),
    ("/process/user/gid", Supported("user")),
    ("/process/user/umask", Supported("user")),
    ("/process/user/additionalGids", Supported("user")),
    ("/process/user/username", Refused(
        PropertyUse::Process(|process| text(process.user().username())),
        NOT_LINUX, "write `uid` and `gid`",
    )),
    ("/process/capabilities", Supported("capabilities")),
    ("/process/rlimits", Supported("rlimits")),
    ("/process/noNewPrivileges", Supported("prepare")),
    ("/process/oomScoreAdj", Supported("prepare")),
    ("/process/scheduler", Supported("config::scheduling")),
    ("/process/ioPriority", Supported("config::scheduling")),
    ("/process/apparmorProfile", Supported("labels")),
    ("/process/selinuxLabel", Supported("labels")),
    ("/process/execCPUAffinity", Supported("config::scheduling")),
    ("/hostname", Supported("namespaces")),
    ("/domainname", Supported("namespaces")),
    ("/hooks/prestart", Supported("hooks")),
    ("/hooks/createRuntime", Supported("hooks")),
    ("/hooks/createContainer", Supported("hooks")),
    ("/hooks/startContainer", Supported("hooks")),
    ("/hooks/poststart", Supported("hooks")),
    ("/hooks/poststop", Supported("hooks")),
    ("/annotations", Supported("state")),
    ("/linux/devices", Supported("devices")),
    ("/linux/uidMappings", Supported("id_map")),
    ("/linux/gidMappings", Supported("id_map")),
    ("/linux/namespaces", Supported("namespaces")),
    ("/linux/resources", Supported("cgroup")),
    ("/linux/cgroupsPath", Supported("cgroup")),
    ("/linux/rootfsPropagation", Supported("rootfs")),
    ("/linux/seccomp", Supported("seccomp")),
    ("/linux/sysctl", Supported("config::sysctl")),
    ("/linux/maskedPaths", Supported("rootfs")),
    ("/linux/readonlyPaths", Supported("rootfs")),
    ("/linux/personality", Supported("config::scheduling")),
    ("/linux/timeOffsets", Supported("namespaces")),
    ("/linux/mountLabel", Supported("labels")),
    ("/linux/intelRdt", Supported("classes")),
    ("/linux/memoryPolicy", Supported("config::memory_policy")),
    ("/linux/netDevices", Supported("network_devices")),
    ("/windows", Refused(
        PropertyUse::Spec(|spec| section(spec.windows())),
        NOT_LINUX, REMOVE_SECTION_HELP,
    )),
    ("/solaris", Refused(
        PropertyUse::Spec(|spec| section(spec.solaris())),
        NOT_LINUX, REMOVE_SECTION_HELP,
    )),
    ("/vm", Refused(
        PropertyUse::Spec(|spec| section(spec.vm())),
        "this runtime does not support virtual machines", REMOVE_SECTION_HELP,
    )),
    ("/zos", Refused(
        PropertyUse::Spec(|spec| section(spec.zos())),
        NOT_LINUX, REMOVE_SECTION_HELP,
    )),
    ("/freebsd", Refused(
        PropertyUse::Present,
        NOT_LINUX, REMOVE_SECTION_HELP,
    )),
];

impl Config {
    /// The unsupported properties in use, each at its place, in the table's order.
    pub fn unsupported_properties(&self) -> Vec<Error> {
        let mut errors = Vec::new();
        for (property, support) in PROPERTIES {
            let Refused(needed, why, instead) = support else { continue };
            let name = property.rsplit('/').next().unwrap_or_default();
            let mut refuse = |place: String| {
                let error = Error::new(Kind::Unsupported, format!("`{name}` is not supported: {why}"));
                errors.push(error.at(place).help(*instead));
            };
            let needed = match needed {
                PropertyUse::Spec(needed) => needed(&self.spec),
                PropertyUse::Process(needed) => self.spec.process().as_ref().is_some_and(needed),
                PropertyUse::Present => self.unknown.iter().any(|unknown| unknown == property),
            };
            if needed {
                refuse((*property).to_owned());
            }
        }
        errors
    }
}

fn text(field: &Option<String>) -> bool {
    field.as_ref().is_some_and(|text| !text.is_empty())
}

/// Whether a section is not empty; such sections are rare, so they are checked as JSON.
fn section<T: Serialize>(field: &Option<T>) -> bool {
    field.as_ref().is_some_and(|section| serde_json::to_value(section).ok() != Some(serde_json::json!({})))
}

#[cfg(test)]
pub(crate) mod schema;
#[cfg(test)]
mod tests;
