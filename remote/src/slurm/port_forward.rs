//! Ports of tasks on loopback: for each connection a relay on the host with Slurm's commands, which reaches the nodes.

use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;

use jobc_schema::plan::Plan;
use jobc_sys::error::{Error, Kind, Result, describe_io};
use rustix::event::PollFlags;

use super::access::Access;
use super::exec::{RunningTask, running};
use super::login::Ports;
use super::ports;
use super::state::Run;
use crate::host::{Running, Stream, Streams};
use crate::local_port;
use crate::place::{PortForward, PortForwardReport};
use crate::websocket::wait;

/// Ended relays are removed this often.
const IDLE: Duration = Duration::from_secs(10);

/// A port of a task, and the socket that accepts connections for it.
struct Forwarded {
    task: RunningTask,
    port: u16,
    listener: TcpListener,
    relays: Vec<Running>,
}

/// Forwards ports until `stop` is readable.
pub(crate) fn forward(
    access: &Access,
    run: &Run,
    forwards: &[PortForward],
    stop: BorrowedFd<'_>,
    report: &(dyn Fn(PortForwardReport) + Sync),
) -> Result<()> {
    let forwarded = forwards.iter().map(|forward| listen(access, run, forward));
    let mut forwarded = forwarded.collect::<Result<Vec<_>>>()?;
    for one in &forwarded {
        let local = one.listener.local_addr().map_or(0, |address| address.port());
        report(PortForwardReport::Listening { local, task: one.task.task.clone(), port: one.port });
    }
    loop {
        let mut interests = vec![(stop, PollFlags::IN)];
        interests.extend(forwarded.iter().map(|one| (one.listener.as_fd(), PollFlags::IN)));
        let ready = wait(&interests, IDLE);
        if !ready[0].is_empty() {
            return Ok(());
        }
        for (one, events) in forwarded.iter_mut().zip(&ready[1..]) {
            one.relays.retain_mut(|relay| !relay.has_ended());
            if events.is_empty() {
                continue;
            }
            let accepted = match one.listener.accept() {
                Ok((local, _)) => relay(access, &one.task, one.port, local),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                    continue;
                }
                Err(error) => {
                    std::thread::sleep(Duration::from_millis(100));
                    let why = format!("cannot accept a connection: {}", describe_io(&error));
                    Err(Error::new(Kind::System, why))
                }
            };
            match accepted {
                Ok(relay) => one.relays.push(relay),
                Err(error) => {
                    let why = format!("{}: {}", one.task.task, error.message());
                    report(PortForwardReport::Failed(why));
                }
            }
        }
    }
}

/// Starts a relay with the connection as input and output.
fn relay(access: &Access, task: &RunningTask, port: u16, local: TcpStream) -> Result<Running> {
    let failed = |error: std::io::Error| Error::new(Kind::System, describe_io(&error));
    local.set_nonblocking(false).map_err(failed)?;
    let output: OwnedFd = local.try_clone().map_err(failed)?.into();
    let streams =
        Streams { stdin: Stream::File(local.into()), stdout: Stream::File(output), stderr: Stream::Null };
    let port = port.to_string();
    let step = access.step(&task.job, &task.node, &["--unbuffered"], &["relay", "127.0.0.1", &port])?;
    let mut words = vec!["relay", &task.node, &port];
    words.extend(step.iter().map(String::as_str));
    access.start(&words, streams)
}

/// Finds the task and its port, and takes the local one.
fn listen(access: &Access, run: &Run, forward: &PortForward) -> Result<Forwarded> {
    let task = running(run, Some(&forward.task))?;
    let port = match forward.port.parse() {
        Ok(port) => port,
        Err(_) => port_of_label(access, run, &task, &forward.port)?,
    };
    let listener = local_port::listen(forward.local, port)?;
    Ok(Forwarded { task, port, listener, relays: vec![] })
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
        let known = role.into_iter().flat_map(|role| &role.ports).map(|port| format!("`{}`", port.label));
        let known: Vec<String> = known.collect();
        let help = if known.is_empty() {
            "name a port by its number; labels are those of `resources.ports`".to_owned()
        } else {
            format!("its ports are {}; a number works too", known.join(", "))
        };
        let message = format!("task `{}` has no port `{}`", task.task, label.escape_debug());
        Error::new(Kind::Config, message).help(help)
    })
}
