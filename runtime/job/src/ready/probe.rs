//! One try: whether a task is ready now.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::{DueProbe, Probe, TaskAccess};
use crate::lifecycle::TaskNumber;
use crate::network::connect_blocking;
use jobc_sys::error::Error;

/// A status line is longer than this for no server.
const MAX_STATUS_LINE_BYTES: usize = 256;

/// Probes once; the error has the reason.
pub(super) fn probe_once(place: &dyn TaskAccess, due: &DueProbe) -> Result<(), String> {
    let (task, within) = (due.check.task, due.within);
    match &due.check.probe {
        Probe::Port(port) => connect(place, task, *port, within).map(drop),
        Probe::Http { port, path } => get(place, task, *port, path, within),
        Probe::Exec(arguments) => execute(place, due, arguments),
        // Lines come by themselves.
        Probe::Log(_) => Err("no line has matched".to_owned()),
    }
}

fn execute(place: &dyn TaskAccess, due: &DueProbe, arguments: &[String]) -> Result<(), String> {
    let program = arguments.first().map_or("", String::as_str);
    let exit = place.run(due.check.task, due.check.attempt, arguments, due.within);
    match exit.map_err(|error| error.to_string())? {
        Some(exit) if exit.code() == 0 => Ok(()),
        Some(exit) => Err(format!("`{program}` ended with exit code {}", exit.code())),
        None => Err(format!("`{program}` did not end within {}", seconds(due.within))),
    }
}

/// Connects to a port of a task; the stream blocks.
fn connect(
    place: &dyn TaskAccess,
    task: TaskNumber,
    port: u16,
    within: Duration,
) -> Result<TcpStream, String> {
    let (socket, address) = place.socket(task).map_err(|error| error.to_string())?;
    let connected = connect_blocking(&socket, &SocketAddr::new(address, port), within);
    connected.map_err(|errno| Error::system(format!("connect to port {port}"), errno).to_string())?;
    Ok(TcpStream::from(socket))
}

/// Asks for a page (RFC 9112) and reads no more than the status.
fn get(
    place: &dyn TaskAccess,
    task: TaskNumber,
    port: u16,
    path: &str,
    within: Duration,
) -> Result<(), String> {
    let until = Instant::now() + within;
    let mut stream = connect(place, task, port, within)?;
    let host = stream.peer_addr().map_or_else(|_| "localhost".to_owned(), |address| address.to_string());
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: jobc\r\nConnection: close\r\n\r\n");
    let late = || format!("`{path}` of port {port} did not answer within {}", seconds(within));
    let failed = |error: &std::io::Error| match error.kind() {
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => late(),
        _ => Error::io(format!("read `{path}` of port {port}"), error).to_string(),
    };
    let timeout = |stream: &TcpStream| {
        let left = until.saturating_duration_since(Instant::now());
        // A timeout of zero would mean to wait forever.
        let left = Some(left.max(Duration::from_millis(1)));
        stream.set_read_timeout(left).and_then(|()| stream.set_write_timeout(left))
    };
    timeout(&stream).and_then(|()| stream.write_all(request.as_bytes())).map_err(|error| failed(&error))?;
    let (mut read, mut answer) = (0, [0; MAX_STATUS_LINE_BYTES]);
    while read < answer.len() && !answer[..read].contains(&b'\n') {
        if Instant::now() >= until {
            return Err(late());
        }
        match timeout(&stream).and_then(|()| stream.read(&mut answer[read..])) {
            Ok(0) => break,
            Ok(count) => read += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(&error)),
        }
    }
    match status(&answer[..read]) {
        Some(..400) => Ok(()),
        Some(status) => Err(format!("`{path}` of port {port} answers with status {status}")),
        None => Err(format!("the server at port {port} does not speak HTTP")),
    }
}

/// The status of an answer: `HTTP/1.1 200 OK`.
fn status(answer: &[u8]) -> Option<u16> {
    let line = answer.split(|&byte| byte == b'\r' || byte == b'\n').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    words.next().filter(|version| version.starts_with("HTTP/1."))?;
    words.next().filter(|status| status.len() == 3)?.parse().ok()
}

/// A time as text: `5s`, `0.5s`.
fn seconds(time: Duration) -> String {
    format!("{}s", (time.as_secs_f64() * 10.0).round() / 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_is_read_from_the_first_line() {
        let check =
            |answer: &str, found: Option<u16>| assert_eq!(status(answer.as_bytes()), found, "{answer}");
        check("HTTP/1.1 200 OK\r\nServer: x\r\n", Some(200));
        check("HTTP/1.0 503 Service Unavailable\n", Some(503));
        check("HTTP/1.1 404\r\n", Some(404));
        check("HTTP/1.1", None);
        check("HTTP/1.1 2xx OK\r\n", None);
        check("HTTP/2 200\r\n", None);
        check("SSH-2.0-OpenSSH_9.2\r\n", None);
        check("", None);
    }
}
