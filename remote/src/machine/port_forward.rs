//! Ports of tasks on loopback here: each connection goes through ssh to the port on the host.

use std::io::{ErrorKind, Read as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Duration;

use jobc_sys::error::{Error, Kind, Result, describe_io};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::program::Connection;
use super::record::{InspectedJob, is_running};
use crate::host::Running;
use crate::local_port;
use crate::place::{PortForward, PortForwardReport, TaskStatus};

/// How often connections that have ended are looked for.
const INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };
/// How long a socket is left alone that cannot accept connections.
const DELAY: Duration = Duration::from_millis(100);

/// A port of a task, and the socket that accepts connections for it.
struct Forwarded {
    task: String,
    address: String,
    port: u16,
    listener: TcpListener,
}

/// Forwards ports until `stop` is readable.
pub(super) fn port_forward(
    connection: &Connection,
    job: &InspectedJob,
    forwards: &[PortForward],
    stop: BorrowedFd<'_>,
    report: &(dyn Fn(PortForwardReport) + Sync),
) -> Result<()> {
    let forwarded = forwards.iter().map(|forward| listen(job, forward)).collect::<Result<Vec<_>>>()?;
    for Forwarded { task, port, listener, .. } in &forwarded {
        let local = listener.local_addr().map_or(0, |address| address.port());
        report(PortForwardReport::Listening { local, task: task.clone(), port: *port });
    }
    let mut open: Vec<(usize, Running)> = Vec::new();
    loop {
        let mut polled = vec![PollFd::from_borrowed_fd(stop, PollFlags::IN)];
        polled.extend(
            forwarded.iter().map(|one| PollFd::from_borrowed_fd(one.listener.as_fd(), PollFlags::IN)),
        );
        match poll(&mut polled, Some(&INTERVAL)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(Error::system("wait for connections", errno)),
        }
        let ready: Vec<bool> = polled.iter().map(|fd| !fd.revents().is_empty()).collect();
        if ready[0] {
            return Ok(());
        }
        let fail = |index: usize, why: &str| {
            report(PortForwardReport::Failed(format!("{}: {why}", forwarded[index].task)));
        };
        open.retain_mut(|(index, tunnel)| {
            let has_ended = tunnel.has_ended();
            if has_ended && let Some(why) = failure(tunnel) {
                fail(*index, &why);
            }
            !has_ended
        });
        for (index, one) in forwarded.iter().enumerate().filter(|(index, _)| ready[index + 1]) {
            match accept(connection, one) {
                Ok(Some(tunnel)) => open.push((index, tunnel)),
                Ok(None) => {}
                Err(error) => {
                    fail(index, &error.message());
                    std::thread::sleep(DELAY);
                }
            }
        }
    }
}

/// Why a tunnel failed; none if it did not.
fn failure(tunnel: &mut Running) -> Option<String> {
    let mut text = String::new();
    let stderr = tunnel.stderr.take();
    if tunnel.wait().is_ok_and(|code| code == 0) {
        return None;
    }
    let _ = stderr?.take(4096).read_to_string(&mut text);
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    let line = line.trim_start_matches("channel 0: ").trim_start_matches("stdio forwarding: ");
    Some(format!("the connection failed: {line}"))
}

fn accept(connection: &Connection, forwarded: &Forwarded) -> Result<Option<Running>> {
    let socket: TcpStream = match forwarded.listener.accept() {
        Ok((socket, _)) => socket,
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
            return Ok(None);
        }
        Err(error) => {
            let message = format!("cannot accept a connection: {}", describe_io(&error));
            return Err(Error::new(Kind::System, message));
        }
    };
    connection.host.tunnel(socket, &forwarded.address, forwarded.port).map(Some)
}

/// Finds the task and its port, and takes the local one.
fn listen(job: &InspectedJob, forward: &PortForward) -> Result<Forwarded> {
    let task = task(job, &forward.task)?;
    if job.network == "job" || job.network == "none" {
        let message =
            format!("the tasks of `{}` have a network of their own (`network: {}`)", job.id, job.network);
        return Err(Error::new(Kind::Unsupported, message)
            .help("leave out `network`, or publish the port by `publish: host` in `resources.ports`"));
    }
    let port = match (forward.port.parse::<u16>(), task.ports.get(&forward.port)) {
        (Ok(port), _) => port,
        (_, Some(port)) => *port,
        _ => {
            let names: Vec<String> = task.ports.keys().map(|name| format!("`{name}`")).collect();
            let message = format!("task `{}` has no port `{}`", task.task, forward.port.escape_debug());
            let help = if names.is_empty() {
                "name a port by its number; labels are those of `resources.ports`".to_owned()
            } else {
                format!("its ports are {}; a number works too", names.join(", "))
            };
            return Err(Error::new(Kind::Config, message).help(help));
        }
    };
    let listener = local_port::listen(forward.local, port)?;
    let address = task.address.clone().unwrap_or_else(|| Ipv4Addr::LOCALHOST.to_string());
    Ok(Forwarded { task: task.task.to_string(), address, port, listener })
}

/// A running task by its name, or the first one of a role.
fn task<'a>(job: &'a InspectedJob, name: &str) -> Result<&'a TaskStatus> {
    let is_of_role = |task: &&TaskStatus| task.task.role == name;
    let named = job.tasks.iter().find(|task| task.task.to_string() == name);
    let found = named.or_else(|| job.tasks.iter().filter(|task| is_running(task)).find(is_of_role));
    match found {
        Some(task) if is_running(task) => Ok(task),
        Some(task) => {
            Err(Error::new(Kind::State, format!("task `{name}` is {}, not running", task.state.as_str())))
        }
        None if job.tasks.iter().any(|task| is_of_role(&task)) => {
            Err(Error::new(Kind::State, format!("no task of `{name}` is running")))
        }
        None => {
            let known: Vec<String> = job.tasks.iter().take(20).map(|task| task.task.to_string()).collect();
            Err(Error::new(Kind::NotFound, format!("there is no task `{name}`"))
                .help(format!("the tasks are {}", known.join(", "))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(network: &str, task: &str, port: &str) -> String {
        let text = format!(
            r#"{{"id": "a.1", "state": "running", "network": "{network}", "submitted": "2026-01-01T00:00:00Z", "tasks": [
                {{"task": "main-0", "state": "succeeded", "attempt": 1}},
                {{"task": "main-1", "state": "ready", "attempt": 1, "address": "127.0.0.1", "ports": {{"http": 20001}}}}]}}"#
        );
        let job = serde_json::from_str(&text).unwrap();
        let forward = PortForward { local: Some(0), task: task.to_owned(), port: port.to_owned() };
        match listen(&job, &forward) {
            Ok(found) => format!("{} {}:{}", found.task, found.address, found.port),
            Err(error) => error.message(),
        }
    }

    #[test]
    fn a_port_is_found_by_task_and_label() {
        for (network, task, port, expected) in [
            ("host", "main-1", "http", "main-1 127.0.0.1:20001"),
            ("host", "main", "8080", "main-1 127.0.0.1:8080"),
            ("host", "main-1", "grpc", "task `main-1` has no port `grpc`"),
            ("host", "main-0", "http", "task `main-0` is succeeded, not running"),
            ("host", "side", "http", "there is no task `side`"),
            ("job", "main", "http", "the tasks of `a.1` have a network of their own (`network: job`)"),
        ] {
            assert_eq!(check(network, task, port), expected);
        }
    }
}
