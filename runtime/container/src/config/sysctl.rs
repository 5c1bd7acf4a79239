//! Kernel parameters: `linux.sysctl`, which may only name what a namespace of the container's own keeps apart.

use std::ffi::CString;

use oci_spec::runtime::{Linux, LinuxNamespaceType};

use super::namespace_ownership::check_own_namespace;
use jobc_schema::pointer;
use jobc_sys::error::{Error, Kind};

/// A parameter to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its file, below /proc and without a leading `/`.
    pub path: CString,
    /// The value to write.
    pub value: CString,
    /// Where config.json asks for it.
    pub pointer: String,
}

/// The parameters of System V IPC that are kept apart (ipc/ipc_sysctl.c); those of message queues are below
/// `fs/mqueue`.
const IPC: &[&str] = &[
    "auto_msgmni",
    "msg_next_id",
    "msgmax",
    "msgmnb",
    "msgmni",
    "sem",
    "sem_next_id",
    "shm_next_id",
    "shm_rmid_forced",
    "shmall",
    "shmmax",
    "shmmni",
];

/// Reads the parameters, sorted by name.
///
/// # Errors
///
/// Every parameter that would change the host or another container, and every invalid name.
pub fn from_config(linux: &Linux) -> Result<Vec<Parameter>, Vec<Error>> {
    let mut written: Vec<_> = linux.sysctl().iter().flatten().collect();
    written.sort_unstable();
    let (mut parameters, mut errors) = (Vec::new(), Vec::new());
    for (name, value) in written {
        let place = format!("/linux/sysctl/{}", pointer::escape(name));
        match parse_parameter(linux, name, value) {
            Ok((path, value)) => parameters.push(Parameter { path, value, pointer: place }),
            Err(error) => errors.push(error.at(place)),
        }
    }
    if errors.is_empty() { Ok(parameters) } else { Err(errors) }
}

fn parse_parameter(linux: &Linux, name: &str, value: &str) -> Result<(CString, CString), Error> {
    let path = path(name);
    let parts: Vec<&str> = path.split('/').collect();
    if parts.iter().any(|part| matches!(*part, "" | "." | "..")) || name.contains('\0') {
        return Err(Error::new(Kind::Config, format!("`{name}` is not a sysctl name"))
            .help("write it as sysctl(8) does, such as `net.core.somaxconn`"));
    }
    let kind = match parts[..] {
        ["net", _, ..] => LinuxNamespaceType::Network,
        ["kernel", name] if IPC.contains(&name) => LinuxNamespaceType::Ipc,
        ["fs", "mqueue", _] => LinuxNamespaceType::Ipc,
        ["kernel", "domainname"] => LinuxNamespaceType::Uts,
        ["kernel", "hostname"] => {
            return Err(Error::new(Kind::Unsupported, "the host name is not set as a sysctl")
                .help("write `hostname`"));
        }
        _ => {
            return Err(Error::new(Kind::Unsupported, format!("`{name}` applies to the whole host")).help(
                "set it on the host; a container can have its own of `net`, `fs.mqueue` and System V IPC",
            ));
        }
    };
    check_own_namespace(Some(linux), kind).map_err(|because| {
        Error::new(Kind::Config, format!("`{name}` would change the host: {because}"))
            .help(format!("write `{{\"type\": \"{}\"}}` in `linux.namespaces`", namespace_name(kind)))
    })?;
    let text = |text: &str| {
        CString::new(text).map_err(|_| Error::new(Kind::Config, "the value contains a NUL character"))
    };
    Ok((text(&format!("sys/{path}"))?, text(value)?))
}

/// The file of a parameter: the first separator in a name, `.` or `/`, is the one it uses, and the other one represents
/// the first inside a part, as in `net/ipv4/conf/eth0.100/forwarding` (sysctl(8)).
fn path(name: &str) -> String {
    let dots = name.find(['.', '/']).is_some_and(|at| name[at..].starts_with('.'));
    if !dots {
        return name.to_owned();
    }
    let swap = |character| match character {
        '.' => '/',
        '/' => '.',
        other => other,
    };
    name.chars().map(swap).collect()
}

fn namespace_name(kind: LinuxNamespaceType) -> &'static str {
    match kind {
        LinuxNamespaceType::Network => "network",
        LinuxNamespaceType::Ipc => "ipc",
        _ => "uts",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A parameter in a container with some namespaces, and where it is written or why not.
    fn check(namespaces: &Value, name: &str, value: &str) -> String {
        let linux = json!({"namespaces": namespaces, "sysctl": {name: value}});
        let message = match from_config(&serde_json::from_value(linux).expect("a section")) {
            Ok(all) => {
                all.iter().map(|one| format!("{:?} = {:?} {}", one.path, one.value, one.pointer)).collect()
            }
            Err(errors) => {
                errors.iter().map(|error| format!("{error}\n    {:?}", error.advice())).collect::<String>()
            }
        };
        format!("{name} = {value:?} with {namespaces}\n  {message}\n")
    }

    #[test]
    fn parameters_of_the_container_and_of_the_host() {
        let all = json!([{"type": "network"}, {"type": "ipc"}, {"type": "uts"}]);
        let none = json!([]);
        let joined = json!([{"type": "network", "path": "/proc/self/ns/net"}]);
        let cases = [
            check(&all, "net.ipv4.ip_forward", "1"),
            check(&all, "net.ipv4.conf.eth0/100.forwarding", "1"),
            check(&all, "net/ipv4/conf/eth0.100/forwarding", "1"),
            check(&all, "kernel.sem", "250 32000 32 128"),
            check(&all, "fs.mqueue.msg_max", "10"),
            check(&all, "kernel.domainname", "example"),
            check(&none, "net.ipv4.ip_forward", "1"),
            check(&joined, "net.ipv4.ip_forward", "1"),
            check(&none, "kernel.shmmax", "1"),
            check(&none, "kernel.domainname", "example"),
            check(&all, "kernel.hostname", "x"),
            check(&all, "kernel.core_pattern", "|/bin/evil"),
            check(&all, "net", "1"),
            check(&all, "net/../kernel/core_pattern", "|/bin/evil"),
            check(&all, "net.//.kernel.core_pattern", "|/bin/evil"),
            check(&all, "fs.mqueue./.core", "1"),
            check(&all, "", "1"),
            check(&all, "net.a", "x\0y"),
            check(&all, "net.a\0b", "x"),
        ];
        insta::assert_snapshot!(cases.concat());
    }
}
