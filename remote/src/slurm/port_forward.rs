//! Ports of tasks on loopback: for each connection a relay on the host with Slurm's commands, which reaches the nodes.

use std::net::TcpStream;

use jobc_schema::plan::Plan;
use jobc_sys::error::{Error, Kind, Result};

use super::access::Access;
use super::exec::{RunningTask, running};
use super::login::Ports;
use super::ports;
use super::state::Run;
use crate::forwarded::{Forwarded, by_processes, unknown_label};
use crate::host::{Running, Stream, Streams};
use crate::place::{ForwardRequest, PortForward};

/// Forwards ports until it is told to stop.
pub(crate) fn forward(access: &Access, run: &Run, request: ForwardRequest<'_>) -> Result<()> {
    let start = |one: &Forwarded<RunningTask>, local| relay(access, &one.to, one.port, local);
    by_processes(request, |forward| listen(access, run, forward), start)
}

/// Starts a relay with the connection as input and output.
fn relay(access: &Access, task: &RunningTask, port: u16, local: TcpStream) -> Result<Running> {
    let streams = Streams::of_socket(local, Stream::Null)?;
    let port = port.to_string();
    let step = access.step(&task.job, &task.node, &["--unbuffered"], &["relay", "127.0.0.1", &port])?;
    let mut words = vec!["relay", &task.node, &port];
    words.extend(step.iter().map(String::as_str));
    access.start(&words, streams)
}

/// Finds the task and its port, and takes the local one.
fn listen(access: &Access, run: &Run, forward: &PortForward) -> Result<Forwarded<RunningTask>> {
    let task = running(run, Some(&forward.task))?;
    let port = match forward.port.parse() {
        Ok(port) => port,
        Err(_) => port_of_label(access, run, &task, &forward.port)?,
    };
    Forwarded::listen(forward, task.task.clone(), port, task)
}

fn port_of_label(access: &Access, run: &Run, task: &RunningTask, label: &str) -> Result<u16> {
    let question = Ports { run: run.name.clone(), group: task.group.clone() };
    let (addresses, plan) = access.ask("read the ports of the job", question)?;
    let plan: Plan = serde_json::from_str(&plan)
        .map_err(|error| Error::new(Kind::Config, format!("cannot read the plan of the job: {error}")))?;
    let (role, index) = task.task.rsplit_once('-').unwrap_or((&task.task, "0"));
    let index = index.parse().unwrap_or_default();
    let of_job = || plan.jobs.first().and_then(|job| ports::first_of_job(job, &addresses));
    let first = ports::first(&addresses).or_else(of_job).unwrap_or_default();
    let number = plan.jobs.first().and_then(|job| ports::number(job, first, role, index, label));
    number.ok_or_else(|| {
        let role = plan.jobs.first().and_then(|job| job.role(role));
        let known = role.into_iter().flat_map(|role| &role.ports).map(|port| port.label.as_str());
        unknown_label(&task.task, label, known)
    })
}
