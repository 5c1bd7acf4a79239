//! NCCL's own report of its ranks: its RAS service, which each process of NCCL 2.24 and later serves on a port of its
//! loopback address (docs.nvidia.com, "RAS").

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Where it listens unless `NCCL_RAS_ADDR` names another place.
const PORT: u16 = 28028;

/// How long it may take: it asks all ranks.
const TIMEOUT: Duration = Duration::from_secs(5);

/// More of it is not kept.
const MAX_BYTES: usize = 64 << 10;

/// What it says of ranks that have lost each other.
const TROUBLE: [&str; 4] = ["MISMATCH", "INCOMPLETE", "DEAD", "TIMEOUT"];

/// Asks the service in the network namespace of this thread; nothing if none listens.
pub(super) fn ask() -> std::io::Result<Option<String>> {
    let until = Instant::now() + TIMEOUT;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
    let mut stream = match TcpStream::connect_timeout(&address, TIMEOUT) {
        Ok(stream) => stream,
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => return Ok(None),
        Err(error) => return Err(error),
    };
    stream.set_write_timeout(Some(TIMEOUT))?;
    stream.write_all(b"TIMEOUT 3\nVERBOSE STATUS\n")?;
    let (mut text, mut buffer) = (vec![], [0; 4096]);
    while text.len() < MAX_BYTES {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => text.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            // What came until then is what there is.
            Err(error)
                if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) =>
            {
                break;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Some(String::from_utf8_lossy(&text).into_owned()))
}

/// Whether a report says that ranks have lost each other.
pub(super) fn has_trouble(report: &str) -> bool {
    TROUBLE.iter().any(|word| report.contains(word))
}
