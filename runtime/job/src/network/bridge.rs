//! The bridge, and the veth(4) pairs that connect tasks to it, one end in each namespace.

use std::ffi::{CStr, CString};
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd as _, OwnedFd};

use rustix::io::Errno;

use super::address::Subnet;
use super::error::no_such_task;
use super::namespace;
use jobc_sys::error::{Error, Result, errno_of};
use jobc_sys::netlink::{Attributes, Batch, NEW, Netlink};

/// Maximum tasks on one network: the ports of a Linux bridge (`BR_MAX_PORTS`).
pub(super) const MAX_TASKS: usize = 1023;

/// The numbers that new interfaces get: `lo` is always the first of its namespace.
const LOOPBACK: u32 = 1;
const BRIDGE: u32 = 2;
const TASK: u32 = 2;
/// Far from the numbers that the kernel assigns meanwhile, which are consecutive.
const FIRST_PORT: u32 = 1000;

// linux/rtnetlink.h, linux/if_link.h, linux/if_addr.h, linux/veth.h, linux/ip.h.
const RTM_NEWLINK: u16 = 16;
const RTM_DELLINK: u16 = 17;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MASTER: u16 = 10;
const IFLA_LINKINFO: u16 = 18;
const IFLA_AF_SPEC: u16 = 26;
const IFLA_INET_CONF: u16 = 1;
const IPV4_DEVCONF_FORWARDING: u16 = 1;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_BROADCAST: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const IFF_UP: u32 = 1;
const AF_INET: u8 = 2;

const BRIDGE_NAME: &CStr = c"job0";

/// Fixed, since a bridge takes the lowest of its ports' addresses otherwise, and changes it as they come and go.
const BRIDGE_MAC: [u8; 6] = [0x02, b'j', b'o', b'b', b'c', 0x01];

/// Whether packets are forwarded between interfaces. The file shows the reader's network namespace.
const IP_FORWARD_PATH: &str = "/proc/sys/net/ipv4/ip_forward";

/// Creates the namespace of the bridge, and its bridge.
pub(super) fn create_bridge(range: Subnet) -> Result<OwnedFd> {
    let made = namespace::unshare()?;
    let mut batch = Batch::default();
    batch.request("create a bridge", RTM_NEWLINK, NEW, &link(BRIDGE), |attributes| {
        attributes.text(IFLA_IFNAME, BRIDGE_NAME).bytes(IFLA_ADDRESS, &BRIDGE_MAC);
        attributes.nested(IFLA_LINKINFO, |info| {
            info.text(IFLA_INFO_KIND, c"bridge");
        });
    });
    bring_up(&mut batch, "lo", LOOPBACK);
    address(&mut batch, BRIDGE, range.bridge(), range);
    Netlink::route()?.send(&batch)?;
    // Without an uplink, a task gets an answer that there is no route, instead of none.
    match std::fs::write(IP_FORWARD_PATH, "1") {
        Ok(()) => {}
        // A container around this process shows its /proc/sys read-only.
        Err(error) if matches!(errno_of(&error), Errno::ROFS | Errno::ACCESS | Errno::PERM) => {
            forward_from(BRIDGE_NAME)?;
        }
        Err(error) => return Err(Error::system(format!("write `{IP_FORWARD_PATH}`"), errno_of(&error))),
    }
    Ok(made)
}

/// Passes packets on that come in by one interface of this thread's network namespace.
pub(super) fn forward_from(interface: &CStr) -> Result<()> {
    let mut batch = Batch::default();
    let what = format!("pass packets on that come from `{}`", interface.to_string_lossy());
    batch.request(what, RTM_NEWLINK, 0, &[0; 16], |attributes| {
        attributes.text(IFLA_IFNAME, interface).nested(IFLA_AF_SPEC, |families| {
            families.nested(AF_INET.into(), |inet| {
                inet.nested(IFLA_INET_CONF, |settings| {
                    settings.number(IPV4_DEVCONF_FORWARDING, 1);
                });
            });
        });
    });
    Netlink::route()?.send(&batch)
}

/// Creates the namespaces of tasks; with a range each is connected to the bridge and has an address.
///
/// This thread must be in the bridge's namespace, and ends up in the last one made.
pub(super) fn create_tasks(numbers: std::ops::Range<usize>, on: Option<Subnet>) -> Result<Vec<OwnedFd>> {
    // It stays a socket of the bridge's namespace.
    let bridge = on.map(|_| Netlink::route()).transpose()?;
    let mut namespaces = Vec::with_capacity(numbers.len());
    let mut sockets = Vec::with_capacity(numbers.len());
    for _ in numbers.clone() {
        namespaces.push(namespace::unshare()?);
        sockets.push(Netlink::route()?);
    }
    if let Some(bridge) = &bridge {
        let mut batch = Batch::default();
        for (number, namespace) in numbers.clone().zip(&namespaces) {
            veth(&mut batch, number, namespace);
        }
        bridge.send(&batch)?;
    }
    for (number, socket) in numbers.zip(&sockets) {
        let mut batch = Batch::default();
        bring_up(&mut batch, "lo", LOOPBACK);
        if let Some(range) = on {
            bring_up(&mut batch, "eth0", TASK);
            address(&mut batch, TASK, range.task(number), range);
            default_route(&mut batch, range.bridge());
        }
        socket.send(&batch)?;
    }
    Ok(namespaces)
}

/// Creates the namespace of a task's next attempt, in which nothing is left of the last one: no setting, and no port
/// that waits for late packets.
pub(super) fn recreate_task(number: usize, on: Option<Subnet>) -> Result<OwnedFd> {
    if on.is_some() {
        let mut batch = Batch::default();
        batch.request(format!("disconnect task {number}"), RTM_DELLINK, 0, &link(port(number)), |_| {});
        // It does not exist if the task has removed its own end, and the other with it.
        let _ = Netlink::route()?.send(&batch);
    }
    let made = create_tasks(number..number + 1, on)?.pop();
    made.ok_or_else(|| no_such_task(number))
}

/// The number of the bridge's port that leads to a task.
fn port(number: usize) -> u32 {
    FIRST_PORT + u32::try_from(number).unwrap_or_default()
}

/// Both ends of a task's veth pair: a port of the bridge, and `eth0`.
fn veth(batch: &mut Batch, number: usize, namespace: &OwnedFd) {
    let name = CString::new(format!("task{number}")).unwrap_or_default();
    batch.request(
        format!("connect task {number} to the bridge"),
        RTM_NEWLINK,
        NEW,
        &link(port(number)),
        |here| {
            here.text(IFLA_IFNAME, &name).number(IFLA_MASTER, BRIDGE);
            here.nested(IFLA_LINKINFO, |info| {
                info.text(IFLA_INFO_KIND, c"veth").nested(IFLA_INFO_DATA, |data| {
                    data.nested(VETH_INFO_PEER, |there| peer(there, c"eth0", namespace));
                });
            });
        },
    );
}

fn peer(there: &mut Attributes<'_>, name: &CStr, namespace: &OwnedFd) {
    let namespace = namespace.as_raw_fd().unsigned_abs();
    // The kernel brings an end up only once it has another.
    let mut down = link(TASK);
    down[8..].fill(0);
    there.fixed(&down).text(IFLA_IFNAME, name).number(IFLA_NET_NS_FD, namespace);
}

fn bring_up(batch: &mut Batch, name: &str, index: u32) {
    batch.request(format!("bring `{name}` up"), RTM_NEWLINK, 0, &link(index), |_| {});
}

fn address(batch: &mut Batch, index: u32, address: Ipv4Addr, range: Subnet) {
    let mut fixed = [AF_INET, range.length(), 0, 0, 0, 0, 0, 0];
    fixed[4..].copy_from_slice(&index.to_ne_bytes());
    batch.request(format!("set the address {address}"), RTM_NEWADDR, NEW, &fixed, |attributes| {
        attributes.bytes(IFA_LOCAL, &address.octets()).bytes(IFA_ADDRESS, &address.octets());
        attributes.bytes(IFA_BROADCAST, &range.last().octets());
    });
}

fn default_route(batch: &mut Batch, gateway: Ipv4Addr) {
    // Table `main`, set by hand (`RTPROT_STATIC`), to anywhere, `RTN_UNICAST`.
    let fixed = [AF_INET, 0, 0, 0, 254, 4, 0, 1, 0, 0, 0, 0];
    batch.request(format!("set the route by {gateway}"), RTM_NEWROUTE, NEW, &fixed, |attributes| {
        attributes.bytes(RTA_GATEWAY, &gateway.octets());
    });
}

/// struct ifinfomsg of an interface that is to be up.
fn link(index: u32) -> [u8; 16] {
    let mut fixed = [0; 16];
    fixed[4..8].copy_from_slice(&index.to_ne_bytes());
    fixed[8..12].copy_from_slice(&IFF_UP.to_ne_bytes());
    fixed[12..].copy_from_slice(&IFF_UP.to_ne_bytes());
    fixed
}
