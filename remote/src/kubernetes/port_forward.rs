//! Ports of tasks on loopback: local connections become streams of one WebSocket, as kubectl does it since 1.31.
//!
//! Each connection has a stream of data, of which either direction can end alone, and one on which the server reports
//! an error. A lost WebSocket is opened again at the next connection.

mod tunnel;

use std::collections::BTreeMap;
use std::os::fd::AsFd as _;
use std::time::Duration;

use jobc_sys::error::Result;
use rustix::event::PollFlags;

use super::client::Client;
use super::objects::ClusterJob;
use super::pods::{Pod, is_own};
use super::task;
use crate::forwarded::{self, unknown_label};
use crate::place::{ForwardRequest, PortForward};
use crate::websocket::wait;
use tunnel::Tunnel;

/// The protocol inside of the WebSocket.
const PROTOCOL: &str = "SPDY/3.1+portforward.k8s.io";
/// Looked at when nothing happens.
const IDLE: Duration = Duration::from_mins(1);

/// The task is looked for anew for each tunnel.
type Forwarded = forwarded::Forwarded<()>;

/// Forwards ports until it is told to stop.
pub(crate) fn forward(client: &Client, found: &ClusterJob, request: ForwardRequest<'_>) -> Result<()> {
    let listen = |forward| listen(client, found, forward);
    let forwarded = request.forwards.iter().map(listen).collect::<Result<Vec<_>>>()?;
    for one in &forwarded {
        one.announce(request.report);
    }
    std::thread::scope(|scope| {
        for one in &forwarded {
            scope.spawn(move || serve(client, found, one, request));
        }
    });
    Ok(())
}

/// Finds the task and its port, and takes the local one.
fn listen(client: &Client, found: &ClusterJob, forward: &PortForward) -> Result<Forwarded> {
    let pod = task::running(client, found, Some(&forward.task))?;
    let port = match forward.port.parse() {
        Ok(port) => port,
        Err(_) => port_of_label(&pod, &forward.port)?,
    };
    Forwarded::listen(forward, pod.task(), port, ())
}

fn port_of_label(pod: &Pod, label: &str) -> Result<u16> {
    let containers = &pod.spec.containers;
    let main = containers.iter().find(|container| is_own(&container.name)).or(containers.first());
    let ports = main.into_iter().flat_map(|main| &main.ports);
    let known: BTreeMap<&str, u16> = ports.map(|port| (port.name.as_str(), port.container_port)).collect();
    known.get(label).copied().ok_or_else(|| unknown_label(&pod.task(), label, known.keys().copied()))
}

/// Accepts connections, and moves bytes both ways.
fn serve(
    client: &Client,
    found: &ClusterJob,
    forwarded: &Forwarded,
    ForwardRequest { stop, report, .. }: ForwardRequest<'_>,
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
