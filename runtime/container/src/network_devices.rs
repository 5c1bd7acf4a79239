//! `linux.netDevices`: network devices of this namespace that move into the container's.
//!
//! This process, which has the rights over them, moves them while the new process waits in its network namespace. The
//! kernel drops the addresses of a device that moves, so permanent ones of global scope are added again (config-linux.md,
//! "Network Devices"). Nothing moves a device back: that is up to whoever owns the namespace.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd as _, OwnedFd};

use oci_spec::runtime::{Linux, Spec};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::namespaces::Namespace;
use jobc_schema::pointer;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::netlink::{DUMP, Message, NEW, Netlink};
use jobc_sys::syscall::Kernel as _;
use jobc_sys::syscall::linux::Linux as Calls;

// linux/rtnetlink.h, linux/if_link.h, linux/if_addr.h, linux/if.h.
const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_NEWADDR: u16 = 20;
const RTM_GETADDR: u16 = 22;
const IFLA_IFNAME: u16 = 3;
const IFLA_NET_NS_FD: u16 = 28;
const IFA_ADDRESS: u16 = 1;
const IFA_LABEL: u16 = 3;
const IFA_CACHEINFO: u16 = 6;
const IFA_FLAGS: u16 = 8;
const IFA_F_PERMANENT: u32 = 0x80;
/// The flags of an address that its owner chose: no duplicate address detection, home address, temporary addresses,
/// no route of the prefix, multicast.
const IFA_F_CHOSEN: u32 = 0x02 | 0x10 | 0x100 | 0x200 | 0x400;
const RT_SCOPE_UNIVERSE: u8 = 0;
const IFF_UP: u32 = 1;
/// The sizes of `struct ifinfomsg` and `struct ifaddrmsg`.
const LINK: usize = 16;
const ADDRESS: usize = 8;

/// A device that the container gets.
#[derive(Debug)]
pub struct NetworkDevice {
    name: CString,
    inside: CString,
    place: String,
}

/// Whether config.json has any.
pub fn are_wanted(linux: &Linux) -> bool {
    linux.net_devices().as_ref().is_some_and(|devices| !devices.is_empty())
}

/// The devices, by their names on the host.
pub fn from_config(spec: &Spec) -> Result<Vec<NetworkDevice>> {
    let mut devices = Vec::new();
    for (name, device) in spec.linux().iter().filter_map(|linux| linux.net_devices().as_ref()).flatten() {
        let place = place_of(name);
        let text = |name: &str| {
            CString::new(name).map_err(|_| Error::new(Kind::Config, "the name has a NUL byte").at(&place))
        };
        let inside = device.name().as_deref().filter(|name| !name.is_empty()).unwrap_or(name);
        devices.push(NetworkDevice { name: text(name)?, inside: text(inside)?, place: place.clone() });
    }
    devices.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(devices)
}

/// The place of a device in config.json.
pub(crate) fn place_of(name: &str) -> String {
    format!("/linux/netDevices/{}", pointer::escape(name))
}

/// Moves devices into the network namespace of a process.
///
/// # Errors
///
/// At the place of the device in config.json: it does not exist, its name is taken inside, or this user has no right.
pub fn move_to(devices: &[NetworkDevice], pid: u32) -> Result<()> {
    let open = || {
        let path = format!("/proc/{pid}/ns/net");
        rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
    };
    let namespace = open().map_err(|errno| Error::system("open the container's network namespace", errno))?;
    let (here, there) = (Netlink::route()?, netlink_in(&namespace)?);
    devices.iter().try_for_each(|device| device.move_to(&here, &there, &namespace))
}

/// A socket of another namespace: it stays in the one in which it was created, which a thread of its own enters.
fn netlink_in(namespace: &OwnedFd) -> Result<Netlink> {
    let open = || {
        Calls.setns(namespace.as_raw_fd(), Namespace::Network.flag()).map_err(|errno| {
            let error = Error::system("enter the container's network namespace", errno);
            if errno == Errno::PERM { error.help(NO_RIGHT) } else { error }
        })?;
        Netlink::route()
    };
    std::thread::scope(|scope| scope.spawn(open).join())
        .unwrap_or_else(|_| Err(Error::new(Kind::System, "cannot enter the container's network namespace")))
}

const NO_RIGHT: &str = "only root moves network devices of the host; run it as root, or remove `netDevices`";

impl NetworkDevice {
    fn move_to(&self, here: &Netlink, there: &Netlink, namespace: &OwnedFd) -> Result<()> {
        let (name, inside) = (self.name.to_string_lossy(), self.inside.to_string_lossy());
        let failed = |what: String| {
            let place = self.place.clone();
            move |errno: Errno| {
                let error = Error::system(what, errno).at(place);
                if errno == Errno::PERM { error.help(NO_RIGHT) } else { error }
            }
        };
        let index = match find(here, &self.name) {
            Ok(found) => found,
            Err(Errno::NODEV) => {
                let message = format!("this host has no network device `{name}`");
                let error = Error::new(Kind::Config, message).at(&self.place);
                return Err(
                    error.help("write a name that `ip link` lists in the network namespace of the runtime")
                );
            }
            Err(errno) => return Err(failed(format!("find the network device `{name}`"))(errno)),
        };
        let is_template = self.inside.to_bytes().contains(&b'%');
        // Before it moves: one that cannot be renamed there would be lost with the namespace.
        if !is_template && find(there, &self.inside).is_ok() {
            let message =
                format!("the container's network namespace has a network device `{inside}` already");
            let error = Error::new(Kind::Config, message).at(&self.place);
            return Err(error.help("write another `name`, such as `eth%d` for the first number that is free"));
        }
        let addresses = addresses(here, index).map_err(failed(format!("list the addresses of `{name}`")))?;
        let before = indexes(there).map_err(failed("list the container's network devices".to_owned()))?;
        here.query(RTM_NEWLINK, 0, &link(index, 0), |attributes| {
            let number = u32::try_from(namespace.as_raw_fd()).unwrap_or_default();
            attributes.text(IFLA_IFNAME, &self.inside).number(IFLA_NET_NS_FD, number);
        })
        .map_err(failed(format!("move the network device `{name}` into the container")))?;
        let index = if is_template {
            let now = indexes(there).map_err(failed("list the container's network devices".to_owned()))?;
            now.difference(&before).next().copied().ok_or(Errno::NODEV)
        } else {
            find(there, &self.inside)
        }
        .map_err(failed(format!("find the network device `{inside}` in the container")))?;
        for address in addresses {
            address.add(there, index).map_err(failed(format!("keep an address of `{name}`")))?;
        }
        there
            .query(RTM_NEWLINK, 0, &link(index, IFF_UP), |_| {})
            .map_err(failed(format!("bring the network device `{inside}` up in the container")))?;
        Ok(())
    }
}

/// `struct ifinfomsg`: family, type, index, flags, and which of the flags change.
fn link(index: u32, up: u32) -> [u8; LINK] {
    let mut bytes = [0; LINK];
    bytes[4..8].copy_from_slice(&index.to_ne_bytes());
    bytes[8..12].copy_from_slice(&up.to_ne_bytes());
    bytes[12..16].copy_from_slice(&up.to_ne_bytes());
    bytes
}

/// The index of the device with a name.
fn find(netlink: &Netlink, name: &CStr) -> std::result::Result<u32, Errno> {
    let found = netlink.query(RTM_GETLINK, 0, &link(0, 0), |attributes| {
        attributes.text(IFLA_IFNAME, name);
    })?;
    found.first().map(|message| message.number(4)).ok_or(Errno::NODEV)
}

fn indexes(netlink: &Netlink) -> std::result::Result<BTreeSet<u32>, Errno> {
    Ok(netlink
        .query(RTM_GETLINK, DUMP, &link(0, 0), |_| {})?
        .iter()
        .map(|message| message.number(4))
        .collect())
}

/// An address that is added again.
#[derive(Debug)]
struct Address {
    /// Family and length of the prefix.
    family: [u8; 2],
    flags: u32,
    attributes: Vec<(u16, Vec<u8>)>,
}

/// The addresses that a device keeps, in their order.
fn addresses(netlink: &Netlink, index: u32) -> std::result::Result<Vec<Address>, Errno> {
    let list = netlink.query(RTM_GETADDR, DUMP, &[0; ADDRESS], |_| {})?;
    Ok(list.iter().filter(|message| message.number(4) == index).filter_map(Address::kept).collect())
}

impl Address {
    /// The address of a message, where the device keeps it: a permanent one of global scope.
    fn kept(message: &Message) -> Option<Self> {
        let [family, length, short_flags, scope, ..] = *message.content else { return None };
        let attributes = message.attributes(ADDRESS);
        let flags =
            attributes.iter().find(|(kind, _)| *kind == IFA_FLAGS).and_then(|(_, value)| value.first_chunk());
        let flags = flags.map_or(u32::from(short_flags), |flags| u32::from_ne_bytes(*flags));
        let keeps = scope == RT_SCOPE_UNIVERSE
            && flags & IFA_F_PERMANENT != 0
            && attributes.iter().any(|(kind, _)| *kind == IFA_ADDRESS);
        // A label has the device's old name; an address without a lifetime is permanent.
        let kept = |kind: u16| !matches!(kind, IFA_LABEL | IFA_CACHEINFO | IFA_FLAGS);
        let attributes = attributes.into_iter().filter(|(kind, _)| kept(*kind));
        keeps.then(|| Self {
            family: [family, length],
            flags: flags & IFA_F_CHOSEN,
            attributes: attributes.map(|(kind, value)| (kind, value.to_vec())).collect(),
        })
    }

    fn add(&self, netlink: &Netlink, index: u32) -> std::result::Result<(), Errno> {
        let mut fixed = [0; ADDRESS];
        fixed[..2].copy_from_slice(&self.family);
        fixed[4..].copy_from_slice(&index.to_ne_bytes());
        netlink.query(RTM_NEWADDR, NEW, &fixed, |attributes| {
            for (kind, value) in &self.attributes {
                attributes.bytes(*kind, value);
            }
            attributes.number(IFA_FLAGS, self.flags);
        })?;
        Ok(())
    }
}
