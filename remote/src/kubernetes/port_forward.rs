//! Ports of tasks on loopback: local connections become streams of one WebSocket, as kubectl does it since 1.31.
//!
//! Each connection has a stream of data, of which either direction can end alone, and one on which the server reports
//! an error. A lost WebSocket is opened again at the next connection.

mod tunnel;

use std::collections::BTreeMap;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Duration;

use jobc_sys::error::Result;
use rustix::event::PollFlags;
use serde::Deserialize;

use super::client::Client;
use super::objects::ClusterJob;
use super::pods::{Pod, is_own};
use super::task;
use crate::forwarded::{self, Report, unknown_label};
use crate::place::PortForward;
use crate::websocket::wait;
use tunnel::Tunnel;

/// The protocol inside of the WebSocket.
const PROTOCOL: &str = "SPDY/3.1+portforward.k8s.io";
/// Looked at when nothing happens.
const IDLE: Duration = Duration::from_mins(1);

/// The task is looked for anew for each tunnel.
type Forwarded = forwarded::Forwarded<()>;

/// The parts of a pod needed to find a port by its label.
#[derive(Deserialize)]
struct PodPorts {
    spec: Spec,
}

#[derive(Deserialize)]
struct Spec {
    containers: Vec<Container>,
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Container {
    name: String,
    ports: Vec<ContainerPort>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ContainerPort {
    name: String,
    container_port: u16,
}

/// Forwards ports until `stop` is readable.
pub(crate) fn forward(
    client: &Client,
    found: &ClusterJob,
    forwards: &[PortForward],
    stop: BorrowedFd<'_>,
    report: Report<'_>,
) -> Result<()> {
    let forwarded = forwards.iter().map(|forward| listen(client, found, forward));
    let forwarded = forwarded.collect::<Result<Vec<_>>>()?;
    for one in &forwarded {
        one.announce(report);
    }
    std::thread::scope(|scope| {
        for one in &forwarded {
            scope.spawn(move || serve(client, found, one, stop, report));
        }
    });
    Ok(())
}

/// Finds the task and its port, and takes the local one.
fn listen(client: &Client, found: &ClusterJob, forward: &PortForward) -> Result<Forwarded> {
    let pod = task::running(client, found, Some(&forward.task))?;
    let port = match forward.port.parse() {
        Ok(port) => port,
        Err(_) => port_of_label(client, &pod, &forward.port)?,
    };
    Forwarded::listen(forward, pod.task(), port, ())
}

fn port_of_label(client: &Client, pod: &Pod, label: &str) -> Result<u16> {
    let path = format!("/api/v1/namespaces/{}/pods/{}", client.config().namespace, pod.metadata.name);
    let ports: PodPorts = client.get(&path).map_err(|error| error.into_error("read the pod of the task"))?;
    let containers = ports.spec.containers;
    let main = containers.iter().find(|container| is_own(&container.name)).or(containers.first());
    let known: BTreeMap<&str, u16> = main
        .map(|main| main.ports.iter().map(|port| (port.name.as_str(), port.container_port)).collect())
        .unwrap_or_default();
    known.get(label).copied().ok_or_else(|| unknown_label(&pod.task(), label, known.keys().copied()))
}

/// Accepts connections, and moves bytes both ways.
fn serve(
    client: &Client,
    found: &ClusterJob,
    forwarded: &Forwarded,
    stop: BorrowedFd<'_>,
    report: Report<'_>,
) {
    let fail = |why: String| forwarded.fail(report, &why);
    let mut tunnel: Option<Tunnel> = None;
    loop {
        let mut interests = vec![(stop, PollFlags::IN), (forwarded.listener.as_fd(), PollFlags::IN)];
        let timeout = tunnel.as_ref().map_or(IDLE, Tunnel::timeout);
        interests.extend(tunnel.iter().flat_map(Tunnel::interests));
        let ready = wait(&interests, timeout);
        if !ready[0].is_empty() {
            return;
        }
        let has_connection = !ready[1].is_empty();
        if let Some(open) = &mut tunnel {
            let failures = match open.step(&ready[2..]) {
                Ok(failures) => failures,
                Err(why) => {
                    let lost = open.has_connections().then_some(why);
                    tunnel = None;
                    lost.into_iter().collect()
                }
            };
            failures.into_iter().for_each(fail);
        }
        if !has_connection {
            continue;
        }
        let Some(local) = forwarded.accept(report) else { continue };
        if tunnel.is_none() {
            match open(client, found, &forwarded.task) {
                Ok(opened) => tunnel = Some(opened),
                // The local connection is closed.
                Err(error) => {
                    fail(error.message());
                    continue;
                }
            }
        }
        if let Some(Err(why)) = tunnel.as_mut().map(|open| open.add(local, forwarded.port)) {
            fail(why);
        }
    }
}

/// The way to the pod in which the task runs now: it may be another one than before.
fn open(client: &Client, found: &ClusterJob, task: &str) -> Result<Tunnel> {
    let pod = task::running(client, found, Some(task))?;
    let path =
        format!("/api/v1/namespaces/{}/pods/{}/portforward", client.config().namespace, pod.metadata.name);
    let (socket, _) = client.upgrade(&path, &[PROTOCOL]).map_err(|error| {
        let is_old = error.is(400);
        let error = error.into_error("forward ports");
        if is_old { error.help("the cluster needs Kubernetes 1.31 or newer for this") } else { error }
    })?;
    Ok(Tunnel::new(socket))
}
