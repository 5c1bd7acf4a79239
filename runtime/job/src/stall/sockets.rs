//! Connections of a process that send again and again: what is behind them is not reached.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Fewer repetitions are usual on a busy network.
const MIN_REPETITIONS: u32 = 3;

/// An established connection of TCP.
const ESTABLISHED: &str = "01";

/// A connection of this process whose data is sent again and again: `to 10.1.0.3:29500, sent 5 times again`.
pub(super) fn unacknowledged(pid: u32) -> Option<String> {
    let own: BTreeSet<String> = fs::read_dir(format!("/proc/{pid}/fd"))
        .ok()?
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok()?.into_os_string().into_string().ok())
        .filter_map(|target| Some(target.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    if own.is_empty() {
        return None;
    }
    ["tcp", "tcp6"].into_iter().find_map(|name| {
        let text = fs::read_to_string(format!("/proc/{pid}/net/{name}")).ok()?;
        text.lines().skip(1).find_map(|line| line_of(line, &own))
    })
}

/// The lines are those of proc_net_tcp.txt in the documentation of the kernel.
fn line_of(line: &str, own: &BTreeSet<String>) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let &[_, _, remote, state, queues, _, repetitions, _, probes, inode, ..] = &words[..] else {
        return None;
    };
    let queued = u64::from_str_radix(queues.split(':').next()?, 16).ok()?;
    // What cannot even be sent is probed for.
    let repetitions = u32::from_str_radix(repetitions, 16).ok()?.max(probes.parse().ok()?);
    let is_stuck =
        state == ESTABLISHED && queued > 0 && repetitions >= MIN_REPETITIONS && own.contains(inode);
    is_stuck.then(|| format!("to {}, sent again {repetitions} times", address(remote).unwrap_or_default()))
}

/// `0300010A:733C` as an address: words of 32 bits in the order of this host's bytes.
fn address(text: &str) -> Option<String> {
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
    Some(SocketAddr::new(host, port).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_endian = "little")]
    #[test]
    fn only_own_connections_that_send_again_count() {
        let own = BTreeSet::from(["4711".to_owned()]);
        let line = |state: &str, queue: &str, again: &str, inode: &str| {
            let line = format!(
                "   3: 0200010A:B2F4 0300010A:733C {state} {queue}:00000000 01:00000AD3 {again}     0        0 {inode} 2 0000000000000000"
            );
            line_of(&line, &own)
        };
        let stuck = line("01", "00000001", "00000005", "4711");
        assert_eq!(stuck.as_deref(), Some("to 10.1.0.3:29500, sent again 5 times"));
        assert_eq!(line("01", "00000001", "00000001", "4711"), None);
        assert_eq!(line("01", "00000000", "00000005", "4711"), None);
        let unsent = "1: 0200010A:B2F4 0300010A:733C 01 00000001:00000000 04:00000AD3 00000000 0 4 4711 2 0";
        assert_eq!(line_of(unsent, &own).as_deref(), Some("to 10.1.0.3:29500, sent again 4 times"));
        assert_eq!(line("02", "00000001", "00000005", "4711"), None);
        assert_eq!(line("01", "00000001", "00000005", "4712"), None);
        assert_eq!(address("0000000000000000FFFF00000300010A:0050").as_deref(), Some("10.1.0.3:80"));
    }
}
