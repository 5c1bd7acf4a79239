//! Ports of tasks on loopback here: each connection goes through ssh to the port on the host.

use std::net::Ipv4Addr;

use jobc_sys::error::{Error, Kind, Result};

use super::program::Connection;
use super::record::{InspectedJob, is_running};
use crate::forwarded::{Forwarded, by_processes, unknown_label};
use crate::place::{ForwardRequest, PortForward, TaskStatus};

/// Forwards ports until it is told to stop.
pub(super) fn port_forward(
    connection: &Connection,
    job: &InspectedJob,
    request: ForwardRequest<'_>,
) -> Result<()> {
    let start = |one: &Forwarded<String>, socket| connection.host.tunnel(socket, &one.to, one.port);
    by_processes(request, |forward| listen(job, forward), start)
}

/// Finds the task and its port, and takes the local one.
fn listen(job: &InspectedJob, forward: &PortForward) -> Result<Forwarded<String>> {
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
            let known = task.ports.keys().map(String::as_str);
            return Err(unknown_label(&task.task.to_string(), &forward.port, known));
        }
    };
    let address = task.address.clone().unwrap_or_else(|| Ipv4Addr::LOCALHOST.to_string());
    Forwarded::listen(forward, task.task.to_string(), port, address)
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
            Ok(found) => format!("{} {}:{}", found.task, found.to, found.port),
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
