//! The sockets of a network namespace, and which of them a process has, as /proc shows them (proc_pid_net(5)).

use std::collections::BTreeMap;
use std::{fs, io};

/// A TCP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpSocket {
    /// Its own port.
    pub local_port: u16,
    /// The port at the other end; 0 without one.
    pub remote_port: u16,
    /// Whether it waits for connections.
    pub listens: bool,
    /// The inode, by which a process's file descriptors name it.
    pub inode: u64,
}

/// The field with the inode of each line of a table, by the table's name.
const INODE_FIELDS: [(&str, usize); 9] = [
    ("tcp", 9),
    ("tcp6", 9),
    ("udp", 9),
    ("udp6", 9),
    ("raw", 9),
    ("raw6", 9),
    ("unix", 6),
    ("netlink", 9),
    ("packet", 8),
];

/// The sockets of a network namespace by their inodes: TCP sockets only.
///
/// A socket that was never connected, or whose connection was reset, is in no table.
pub type Sockets = BTreeMap<u64, Option<TcpSocket>>;

/// The sockets of the network namespace that a process is in.
///
/// # Errors
///
/// The process is gone.
pub fn sockets_of_namespace(pid: u32) -> io::Result<Sockets> {
    let mut all = Sockets::new();
    for (name, field) in INODE_FIELDS {
        let table = match fs::read_to_string(format!("/proc/{pid}/net/{name}")) {
            Ok(table) => table,
            // A kernel without IPv6, for example.
            Err(error) if error.kind() == io::ErrorKind::NotFound && name != "tcp" => continue,
            Err(error) => return Err(error),
        };
        if name.starts_with("tcp") {
            all.extend(tcp_sockets(&table).map(|socket| (socket.inode, Some(socket))));
        } else {
            let inode = |line: &str| line.split_whitespace().nth(field)?.parse().ok();
            all.extend(table.lines().skip(1).filter_map(inode).map(|inode| (inode, None)));
        }
    }
    Ok(all)
}

/// The sockets in the text of a table of TCP sockets.
pub fn tcp_sockets(table: &str) -> impl Iterator<Item = TcpSocket> + '_ {
    /// `TCP_LISTEN` of the kernel.
    const LISTENS: &str = "0A";
    table.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let port = |field: &str| u16::from_str_radix(field.rsplit_once(':')?.1, 16).ok();
        Some(TcpSocket {
            local_port: port(fields.get(1)?)?,
            remote_port: port(fields.get(2)?)?,
            listens: *fields.get(3)? == LISTENS,
            inode: fields.get(9)?.parse().ok()?,
        })
    })
}

/// The inodes of the sockets that a process has open.
///
/// # Errors
///
/// The process is gone, or this user may not look at its file descriptors.
pub fn sockets_of_process(pid: u32) -> io::Result<Vec<u64>> {
    let mut inodes = Vec::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fd"))? {
        // It may be closed by now.
        let Ok(target) = fs::read_link(entry?.path()) else { continue };
        let inode = target.to_str().and_then(|name| name.strip_prefix("socket:[")?.strip_suffix(']'));
        inodes.extend(inode.and_then(|inode| inode.parse::<u64>().ok()));
    }
    Ok(inodes)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd as _;

    use super::*;

    #[test]
    fn the_own_sockets_are_found() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
        let all = sockets_of_namespace(std::process::id()).expect("this process is there");
        let own = sockets_of_process(std::process::id()).expect("its files can be read");
        let found = |wanted: &dyn Fn(&TcpSocket) -> bool| {
            own.iter().filter_map(|inode| all.get(inode).copied().flatten()).any(|socket| wanted(&socket))
        };
        assert!(
            found(&|socket| socket.listens && socket.local_port == port),
            "{} {all:?}",
            listener.as_raw_fd()
        );
        assert!(
            found(&|socket| !socket.listens && socket.remote_port == port),
            "{} {all:?}",
            stream.as_raw_fd()
        );
    }

    #[test]
    fn sockets_of_other_families_are_known() {
        let (one, _other) = std::os::unix::net::UnixStream::pair().expect("a pair");
        let inode = fs::read_link(format!("/proc/self/fd/{}", one.as_raw_fd())).expect("it is open");
        let all = sockets_of_namespace(std::process::id()).expect("this process is there");
        let number = inode.to_str().and_then(|name| name.strip_prefix("socket:[")?.strip_suffix(']'));
        assert_eq!(all.get(&number.and_then(|text| text.parse().ok()).expect("a number")), Some(&None));
    }

    #[test]
    fn a_line_that_is_not_a_socket_is_skipped() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1\n   1: x\n";
        let socket = TcpSocket { local_port: 8080, remote_port: 0, listens: true, inode: 4711 };
        assert_eq!(tcp_sockets(table).collect::<Vec<_>>(), [socket]);
    }
}
