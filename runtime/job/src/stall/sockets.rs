//! Sockets of a process: connections that send again and again, as what is behind them is not reached, and ports.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

/// Fewer repetitions are usual on a busy network.
const MIN_REPETITIONS: u32 = 3;

/// States of TCP.
const ESTABLISHED: &str = "01";
const LISTENS: &str = "0A";

/// The connections of a process to other hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Connections {
    /// Those whose data is sent again and again: `to 10.1.0.3:29500, sent again 5 times`.
    pub(super) stuck: Vec<String>,
    /// How many others there are.
    pub(super) others: usize,
}

/// The connections of a process.
pub(super) fn connections(pid: u32) -> Connections {
    let own: BTreeSet<String> = fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| inode_of(&entry.path()))
        .collect();
    let mut found = Connections::default();
    if !own.is_empty() {
        table(pid).lines().for_each(|line| _ = add(&mut found, line, &own));
    }
    found
}

/// The port at which a process listens by one of its descriptors.
pub(super) fn listening_port(pid: u32, descriptor: u32) -> Option<u16> {
    let own = inode_of(Path::new(&format!("/proc/{pid}/fd/{descriptor}")))?;
    table(pid).lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let &[_, local, _, LISTENS, _, _, _, _, _, inode, ..] = &words[..] else { return None };
        (inode == own).then(|| u16::from_str_radix(local.split_once(':')?.1, 16).ok())?
    })
}

/// All sockets of TCP in the network of a process. The lines are those of proc_net_tcp.txt in the documentation of the
/// kernel.
fn table(pid: u32) -> String {
    let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/net/{name}")).unwrap_or_default();
    read("tcp") + &read("tcp6")
}

/// The inode of the socket behind a link in /proc.
fn inode_of(link: &Path) -> Option<String> {
    let target = fs::read_link(link).ok()?.into_os_string().into_string().ok()?;
    Some(target.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
}

/// Adds a line to the connections, if it is one of these.
fn add(found: &mut Connections, line: &str, own: &BTreeSet<String>) -> Option<()> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let &[_, _, remote, ESTABLISHED, queues, _, repetitions, _, probes, inode, ..] = &words[..] else {
        return None;
    };
    let remote = address(remote).filter(|remote| own.contains(inode) && !remote.ip().is_loopback())?;
    let queued = u64::from_str_radix(queues.split(':').next()?, 16).ok()?;
    // What cannot even be sent is probed for.
    let repetitions = u32::from_str_radix(repetitions, 16).ok()?.max(probes.parse().ok()?);
    if queued > 0 && repetitions >= MIN_REPETITIONS {
        found.stuck.push(format!("to {remote}, sent again {repetitions} times"));
    } else {
        found.others += 1;
    }
    Some(())
}

/// `0300010A:733C` as an address: words of 32 bits in the order of this host's bytes.
fn address(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let words: Option<Vec<[u8; 4]>> = (0..host.len() / 8)
        .map(|word| Some(u32::from_str_radix(host.get(word * 8..word * 8 + 8)?, 16).ok()?.to_ne_bytes()))
        .collect();
    let bytes = words?.concat();
    let host = match <[u8; 4]>::try_from(&bytes[..]) {
        Ok(four) => IpAddr::from(Ipv4Addr::from(four)),
        Err(_) => IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(&bytes[..]).ok()?)).to_canonical(),
    };
    Some(SocketAddr::new(host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_endian = "little")]
    #[test]
    fn only_own_connections_that_send_again_count() {
        let own = BTreeSet::from(["4711".to_owned()]);
        let of = |line: &str| {
            let mut found = Connections::default();
            add(&mut found, line, &own);
            (found.stuck.concat(), found.others)
        };
        let line = |state: &str, queue: &str, again: &str, inode: &str| {
            of(&format!(
                "   3: 0200010A:B2F4 0300010A:733C {state} {queue}:00000000 01:00000AD3 {again}     0        0 {inode} 2 0000000000000000"
            ))
        };
        let again = |times: u32| (format!("to 10.1.0.3:29500, sent again {times} times"), 0);
        assert_eq!(line("01", "00000001", "00000005", "4711"), again(5));
        assert_eq!(line("01", "00000001", "00000001", "4711"), (String::new(), 1));
        assert_eq!(line("01", "00000000", "00000005", "4711"), (String::new(), 1));
        let unsent = "1: 0200010A:B2F4 0300010A:733C 01 00000001:00000000 04:00000AD3 00000000 0 4 4711 2 0";
        assert_eq!(of(unsent), again(4));
        assert_eq!(line("02", "00000001", "00000005", "4711"), (String::new(), 0));
        assert_eq!(line("01", "00000001", "00000005", "4712"), (String::new(), 0));
        let mapped = address("0000000000000000FFFF00000300010A:0050");
        assert_eq!(mapped.map(|address| address.to_string()).as_deref(), Some("10.1.0.3:80"));
    }

    #[test]
    fn the_port_of_a_descriptor_is_found() {
        use std::os::fd::AsRawFd as _;
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = std::net::TcpListener::bind(address) else { continue };
            let descriptor = u32::try_from(listener.as_raw_fd()).unwrap();
            let port = listener.local_addr().unwrap().port();
            assert_eq!(listening_port(std::process::id(), descriptor), Some(port));
        }
        assert_eq!(listening_port(std::process::id(), 0), None);
    }
}
