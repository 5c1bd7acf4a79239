//! The addresses of systemd: its own sockets, buses, and the variables that name them.

use std::path::{Path, PathBuf};

/// The address of a D-Bus server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) socket: Socket,
    /// Whether it is a bus, where each program has a name, and not systemd itself.
    pub(super) bus: bool,
}

/// A Unix socket's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Socket {
    Path(PathBuf),
    Abstract(Vec<u8>),
}

impl Address {
    /// The addresses in a text such as `unix:path=/run/bus,guid=1;unix:abstract=/tmp/x` (D-Bus specification, "Server
    /// Addresses"); those of other kinds are left out.
    pub(super) fn read(text: &str) -> Vec<Self> {
        let of = |address: &str| {
            address.strip_prefix("unix:")?.split(',').find_map(|pair| {
                let (key, value) = pair.split_once('=')?;
                let value = unescape(value)?;
                match key {
                    "path" => Some(Socket::Path(
                        <std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(value).into(),
                    )),
                    "abstract" => Some(Socket::Abstract(value)),
                    _ => None,
                }
            })
        };
        text.split(';').filter_map(of).map(|socket| Self { socket, bus: true }).collect()
    }

    /// A socket of the file system.
    pub(super) fn at(path: impl AsRef<Path>, bus: bool) -> Self {
        Self { socket: Socket::Path(path.as_ref().to_owned()), bus }
    }
}

/// Decodes `%20` and the like: bytes that have a special meaning in an address.
fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut bytes = vec![];
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first == b'%' {
            bytes.push(u8::from_str_radix(std::str::from_utf8(after.get(..2)?).ok()?, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    Some(bytes)
}

/// The address of the host's systemd, and whether it was given explicitly.
pub(super) fn host_addresses() -> (Vec<Address>, bool) {
    if let Some(named) = non_empty_variable("DBUS_SYSTEM_BUS_ADDRESS") {
        return (Address::read(&named), true);
    }
    let bus = Address::at("/run/dbus/system_bus_socket", true);
    (vec![Address::at("/run/systemd/private", false), bus], false)
}

/// The address of this user's systemd, and whether it was given explicitly.
///
/// Without `XDG_RUNTIME_DIR`, as after su(1) and under cron, it is looked for where pam_systemd(8) would have it.
pub(super) fn user_addresses() -> (Vec<Address>, bool) {
    let uid = rustix::process::geteuid();
    let usual = || (!uid.is_root()).then(|| format!("/run/user/{}", uid.as_raw()));
    let directory = non_empty_variable("XDG_RUNTIME_DIR").or_else(usual).map(PathBuf::from);
    let bus = non_empty_variable("DBUS_SESSION_BUS_ADDRESS");
    let mut addresses: Vec<Address> =
        directory.iter().map(|directory| Address::at(directory.join("systemd/private"), false)).collect();
    addresses.extend(bus.iter().flat_map(|bus| Address::read(bus)));
    addresses.extend(directory.iter().map(|directory| Address::at(directory.join("bus"), true)));
    (addresses, bus.is_some())
}

/// A variable that is not empty.
fn non_empty_variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

/// The systemd that manages a container of this process: for root the host's, otherwise the user's own.
///
/// Rootless engines start their runtimes as root of a user namespace; if the whole host is in one, their marks are
/// absent.
pub fn uses_user_manager() -> bool {
    let by_engine = || {
        non_empty_variable("_CONTAINERS_ROOTLESS_UID").is_some()
            || non_empty_variable("USER").is_some_and(|user| user != "root")
    };
    !rustix::process::geteuid().is_root() || jobc_sys::host::in_user_namespace() && by_engine()
}
