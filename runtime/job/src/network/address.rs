//! The addresses of a job's network: private ones (RFC 1918) that this host does not use already.
//!
//! Nothing of the network is visible on the host, so all jobs can have the same addresses; but a task that connects to
//! the host's neighbors must not find its own network at their addresses.

use std::fmt;
use std::net::Ipv4Addr;

use jobc_sys::error::{Error, Kind, Result};

/// A run of IPv4 addresses that share their first bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Subnet {
    first: u32,
    /// How many bits are shared.
    length: u8,
}

/// The addresses of one network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Addresses {
    /// For the tasks and the bridge between them.
    pub(super) tasks: Subnet,
    /// For the link from the bridge to the host.
    pub(super) uplink: Subnet,
    /// Whether the host uses none of them.
    pub(super) are_free: bool,
}

/// The bits that the addresses of one network share.
const PREFIX_LENGTH: u8 = 20;

impl Subnet {
    /// A range by its first address.
    pub(super) fn new(first: [u8; 4], length: u8) -> Self {
        Self { first: u32::from_be_bytes(first) & mask(length), length }
    }

    /// The address at an offset from the first.
    pub(super) fn address(self, number: u32) -> Ipv4Addr {
        Ipv4Addr::from(self.first + number)
    }

    /// How many bits are shared.
    pub(super) fn length(self) -> u8 {
        self.length
    }

    /// The last address: broadcast.
    pub(super) fn last(self) -> Ipv4Addr {
        Ipv4Addr::from(self.first | !mask(self.length))
    }

    /// The ranges of the tasks' interfaces, and of the uplink.
    pub(super) fn bridge(self) -> Ipv4Addr {
        self.address(1)
    }

    /// The address of a task by its number. None ends in 0 or 255, which some programs take for something else.
    pub(super) fn task(self, number: usize) -> Ipv4Addr {
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        self.address(256 * (1 + number / 254) + 1 + number % 254)
    }

    fn overlaps(self, other: Self) -> bool {
        let shared = mask(self.length.min(other.length));
        self.first & shared == other.first & shared
    }
}

fn mask(length: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0)
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address(0), self.length)
    }
}

/// Chooses the addresses of a network on this host.
pub(super) fn choose_addresses() -> Result<Addresses> {
    const PATH: &str = "/proc/self/net/fib_trie";
    let table = match std::fs::read_to_string(PATH) {
        Ok(table) => table,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => {
            let why = jobc_sys::error::describe_io(&error);
            return Err(Error::new(Kind::System, format!("cannot read `{PATH}`: {why}")));
        }
    };
    Ok(first_free(&used_subnets(&table)))
}

/// The first ranges that none of the used ones meets.
fn first_free(used: &[Subnet]) -> Addresses {
    let mut free = candidates().filter(|range| !used.iter().any(|used| used.overlaps(*range)));
    match (free.next(), free.next()) {
        (Some(tasks), Some(uplink)) => Addresses { tasks, uplink, are_free: true },
        // For trying networks out (RFC 2544): what a host can do without sooner than its neighbours.
        _ => Addresses {
            tasks: Subnet::new([198, 18, 0, 0], PREFIX_LENGTH),
            uplink: Subnet::new([198, 19, 0, 0], PREFIX_LENGTH),
            are_free: false,
        },
    }
}

/// Private ranges, first those that container engines, clusters and offices use least.
fn candidates() -> impl Iterator<Item = Subnet> {
    let ten = (201..=254).map(|second| [10, second, 0, 0]);
    let hundred = (16..=31).rev().map(|second| [172, second, 240, 0]);
    let office = (0..16).rev().map(|third| [192, 168, third * 16, 0]);
    // Shared by carriers and their customers (RFC 6598).
    let carriers = (64..=127).rev().map(|second| [100, second, 0, 0]);
    ten.chain(hundred).chain(office).chain(carriers).map(|first| Subnet::new(first, PREFIX_LENGTH))
}

/// The addresses in a routing table as /proc/net/fib_trie shows it: the host's own, and those behind a route that is
/// not a default route.
fn used_subnets(table: &str) -> Vec<Subnet> {
    let mut ranges = Vec::new();
    let mut address = None;
    for line in table.lines().map(str::trim_start) {
        if let Some(leaf) = line.strip_prefix("|-- ") {
            address = leaf.trim().parse::<Ipv4Addr>().ok();
        } else if let (Some(address), Some(route)) = (address, line.strip_prefix('/')) {
            let length = route.split(' ').next().and_then(|word| word.parse().ok());
            ranges.extend(
                length
                    .filter(|length| (1..=32).contains(length))
                    .map(|length| Subnet::new(address.octets(), length)),
            );
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 10.128.0.0/9 2 0 2
        |-- 10.201.7.0
           /24 link UNICAST
           /32 link BROADCAST
Local:
  +-- 0.0.0.0/0 3 0 5
     |-- 127.0.0.0
        /8 host LOCAL
     |-- 10.202.1.2
        /32 host LOCAL
";

    #[test]
    fn what_the_host_uses_is_not_taken() {
        let used = used_subnets(TABLE);
        let shown: Vec<String> = used.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["10.201.7.0/24", "10.201.7.0/32", "127.0.0.0/8", "10.202.1.2/32"]);
        let chosen = first_free(&used);
        assert_eq!(chosen.tasks.to_string(), "10.203.0.0/20");
        assert_eq!(chosen.uplink.to_string(), "10.204.0.0/20");
        assert!(chosen.are_free);
    }

    #[test]
    fn a_route_to_everything_private_leaves_the_others() {
        let all_of_ten = Subnet::new([10, 0, 0, 0], 8);
        assert_eq!(first_free(&[all_of_ten]).tasks.to_string(), "172.31.240.0/20");
        let everything = [
            all_of_ten,
            Subnet::new([172, 16, 0, 0], 12),
            Subnet::new([192, 168, 0, 0], 16),
            Subnet::new([100, 64, 0, 0], 10),
        ];
        let chosen = first_free(&everything);
        assert_eq!((chosen.tasks.to_string(), chosen.are_free), ("198.18.0.0/20".to_owned(), false));
        assert_eq!(first_free(&everything[..3]).tasks.to_string(), "100.127.0.0/20");
    }

    #[test]
    fn tasks_have_distinct_addresses_of_the_range() {
        let range = Subnet::new([10, 201, 0, 0], PREFIX_LENGTH);
        assert_eq!(range.bridge().to_string(), "10.201.0.1");
        for (number, address) in [(0, "10.201.1.1"), (253, "10.201.1.254"), (254, "10.201.2.1")] {
            assert_eq!(range.task(number).to_string(), address);
        }
        let all: std::collections::BTreeSet<_> = (0..1023).map(|number| range.task(number)).collect();
        assert_eq!(all.len(), 1023);
        assert!(all.iter().all(|address| Subnet::new(address.octets(), PREFIX_LENGTH) == range));
    }
}
