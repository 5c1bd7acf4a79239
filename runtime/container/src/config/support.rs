//! Every property of config.json, and what this runtime does about it.
//!
//! The list follows the OCI runtime specification 1.3. A row covers everything below its property, except what
//! has a row of its own. A test compares it with the specification's JSON Schema: a property without a decision
//! fails it.

#![allow(clippy::ref_option)] // the getters of the types return references to options

use oci_spec::runtime::{Linux, Process, Spec};
use serde::Serialize;

use super::Config;
use jobc_sys::error::{Error, Kind};

/// What is done about a property.
#[derive(Clone, Copy)]
pub enum Support {
    /// It is carried out, by the module of that name.
    Kept(&'static str),
    /// It is refused where it asks for something: whether it does, what is not supported, and what to do instead.
    Refused(Asked, &'static str, &'static str),
}

/// Whether a configuration uses a property; an empty value does not count.
#[derive(Clone, Copy)]
pub enum Asked {
    /// By the whole.
    Spec(fn(&Spec) -> bool),
    /// By the process.
    Process(fn(&Process) -> bool),
    /// By the Linux section.
    Linux(fn(&Linux) -> bool),
    /// By being there at all: the types do not have it, so it is among the unknown.
    There,
}

use Support::{Kept, Refused};

const LINUX: &str = "this runtime supports only Linux containers";
const LEAVE: &str = "remove the section, or run the bundle on that platform";

/// The table: JSON Pointers with `*` for an array's index or an object's key.
#[rustfmt::skip]
pub const PROPERTIES: &[(&str, Support)] = &[
    ("/ociVersion", Kept("config")),
    ("/root/path", Kept("root")),
    ("/root/readonly", Kept("mounts")),
    ("/mounts/*/destination", Kept("rootfs")),
    ("/mounts/*/source", Kept("mounts")),
    ("/mounts/*/type", Kept("mounts")),
    ("/mounts/*/options", Kept("config::mount_options")),
    ("/mounts/*/uidMappings", Kept("mounts::id_mapped")),
    ("/mounts/*/gidMappings", Kept("mounts::id_mapped")),
    ("/process/terminal", Kept("terminal")),
    ("/process/consoleSize", Kept("terminal")),
    ("/process/cwd", Kept("namespaces")),
    ("/process/env", Kept("prepare")),
    ("/process/args", Kept("prepare")),
    ("/process/commandLine", Refused(
        Asked::Process(|process| text(process.command_line())),
        LINUX, "write `args`",
    )),
    ("/process/user/uid", Kept("user")),
    ("/process/user/gid", Kept("user")),
    ("/process/user/umask", Kept("user")),
    ("/process/user/additionalGids", Kept("user")),
    ("/process/user/username", Refused(
        Asked::Process(|process| text(process.user().username())),
        LINUX, "write `uid` and `gid`",
    )),
    ("/process/capabilities", Kept("capabilities")),
    ("/process/rlimits", Kept("rlimits")),
    ("/process/noNewPrivileges", Kept("prepare")),
    ("/process/oomScoreAdj", Kept("prepare")),
    ("/process/scheduler", Kept("config::scheduling")),
    ("/process/ioPriority", Kept("config::scheduling")),
    ("/process/apparmorProfile", Kept("labels")),
    ("/process/selinuxLabel", Kept("labels")),
    ("/process/execCPUAffinity", Refused(
        Asked::Process(|process| section(process.exec_cpu_affinity())),
        "processes started by `exec` use the container's CPUs", "write `linux.resources.cpu.cpus`",
    )),
    ("/hostname", Kept("namespaces")),
    ("/domainname", Kept("namespaces")),
    ("/hooks/prestart", Kept("hooks")),
    ("/hooks/createRuntime", Kept("hooks")),
    ("/hooks/createContainer", Kept("hooks")),
    ("/hooks/startContainer", Kept("hooks")),
    ("/hooks/poststart", Kept("hooks")),
    ("/hooks/poststop", Kept("hooks")),
    ("/annotations", Kept("state")),
    ("/linux/devices", Kept("devices")),
    ("/linux/uidMappings", Kept("id_map")),
    ("/linux/gidMappings", Kept("id_map")),
    ("/linux/namespaces", Kept("namespaces")),
    ("/linux/resources", Kept("cgroup")),
    ("/linux/cgroupsPath", Kept("cgroup")),
    ("/linux/rootfsPropagation", Kept("rootfs")),
    ("/linux/seccomp", Kept("seccomp")),
    ("/linux/sysctl", Kept("config::sysctl")),
    ("/linux/maskedPaths", Kept("rootfs")),
    ("/linux/readonlyPaths", Kept("rootfs")),
    ("/linux/personality", Kept("config::scheduling")),
    ("/linux/timeOffsets", Kept("namespaces")),
    ("/linux/mountLabel", Kept("labels")),
    ("/linux/intelRdt", Refused(
        Asked::Linux(|linux| section(linux.intel_rdt())),
        "this runtime does not set cache and memory bandwidth classes", "remove `intelRdt`, or set the class on the host",
    )),
    ("/linux/memoryPolicy", Refused(
        Asked::Linux(|linux| linux.memory_policy().is_some()),
        "this runtime does not set memory policies", "write `linux.resources.cpu.mems`, or start the program with numactl(8)",
    )),
    ("/linux/netDevices", Refused(
        Asked::Linux(|linux| linux.net_devices().as_ref().is_some_and(|devices| !devices.is_empty())),
        "this runtime does not move network devices", "move them into a network namespace, and give its path in `linux.namespaces`",
    )),
    ("/windows", Refused(
        Asked::Spec(|spec| section(spec.windows())),
        LINUX, LEAVE,
    )),
    ("/solaris", Refused(
        Asked::Spec(|spec| section(spec.solaris())),
        LINUX, LEAVE,
    )),
    ("/vm", Refused(
        Asked::Spec(|spec| section(spec.vm())),
        "this runtime does not support virtual machines", LEAVE,
    )),
    ("/zos", Refused(
        Asked::Spec(|spec| section(spec.zos())),
        LINUX, LEAVE,
    )),
    ("/freebsd", Refused(
        Asked::There,
        LINUX, LEAVE,
    )),
];

impl Config {
    /// The unsupported properties in use, each at its place, in the table's order.
    pub fn refused(&self) -> Vec<Error> {
        let mut errors = Vec::new();
        for (property, support) in PROPERTIES {
            let Refused(asked, why, instead) = support else { continue };
            let name = property.rsplit('/').next().unwrap_or_default();
            let mut refuse = |place: String| {
                let error = Error::new(Kind::Unsupported, format!("`{name}` is not supported: {why}"));
                errors.push(error.at(place).help(*instead));
            };
            let asked = match asked {
                Asked::Spec(asked) => asked(&self.spec),
                Asked::Process(asked) => self.spec.process().as_ref().is_some_and(asked),
                Asked::Linux(asked) => self.spec.linux().as_ref().is_some_and(asked),
                Asked::There => self.unknown.iter().any(|unknown| unknown == property),
            };
            if asked {
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
