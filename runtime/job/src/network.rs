//! Connects the tasks of a job with each other, the host and the internet.
//!
//! | `network` | what a task has |
//! |---|---|
//! | `host`, `auto` | the host's own network; only /etc/hosts is made, with the names of the tasks |
//! | `none` | a network namespace with `lo` and nothing else |
//! | `job` | a network namespace with `eth0`, whose address is on a network that this job's tasks alone are on |
//!
//! A job's network is a [bridge](bridge) in a namespace of its own, a veth(4) from it to each task, and the
//! [uplink](uplink). A [separate process](helper_process) creates and holds it, so that it is invisible in the host's
//! network and ends with the job's supervisor. It also holds the IPC namespace of tasks that [share
//! memory](crate::shared_memory). As an unprivileged user that process creates a user namespace, which the
//! job's containers share: joining a network namespace requires rights in its user namespace.

mod address;
mod bridge;
mod build;
mod error;
mod events;
mod files;
mod helper;
mod helper_process;
mod messages;
mod namespace;
mod nat;
mod ports;
mod program;
mod publish;
mod socket;
mod uplink;

pub(crate) use namespace::in_namespace_of as in_namespace;
pub(crate) use socket::connect_blocking;

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use jobc_container::rootless::Caller;
use jobc_schema::job::Network as Wanted;
use jobc_schema::plan::{HOST_GATEWAY, JobPlan};
use oci_spec::runtime::{LinuxNamespace, LinuxNamespaceType, Spec};

use crate::caller_ids;
use crate::directory::Directory;
use crate::shared_memory;
use crate::submission::{Publish, Submission};
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::id::TaskId;

use address::Addresses;
pub use build::BuildNetworks;
use error::no_such_task;
pub use events::{NetworkEvent, NetworkEvents};
use files::{NetworkFiles, UplinkAddresses};
use helper::NetworkHelper;
pub use helper_process::main as hold;
use messages::{NetworkSetup, SetupRequest, UplinkRequest};
pub use program::COMMAND;
use publish::Forward;

/// The network of a job, as long as it lives. Dropping it takes away what was made.
#[derive(Debug, Default)]
pub struct Network {
    mode: Wanted,
    tasks: Vec<TaskId>,
    /// The addresses of the job's own network.
    addresses: Option<Addresses>,
    helper: Option<NetworkHelper>,
    /// The IPC namespace that the helper holds, and the roles whose tasks share it.
    ipc: Option<(i32, Vec<String>)>,
    files: Option<NetworkFiles>,
    notes: Vec<String>,
    published: Vec<Publish>,
    events: Option<NetworkEvents>,
}

impl Network {
    /// Creates the plan's `network`; `tasks` are counted as in [`crate::lifecycle`].
    ///
    /// # Errors
    ///
    /// The network is not possible on this host or for this user, or a port to be published is taken. Nothing is left
    /// then. A job's network without an uplink is not an error, but a [note](Self::notes).
    pub fn create(
        plan: &JobPlan,
        tasks: &[TaskId],
        directory: &Directory,
        submission: &Submission,
    ) -> Result<Self> {
        let forwards = ports::forwards(plan, tasks, &submission.publish)?;
        let mut network = Self { mode: plan.network, tasks: tasks.to_vec(), ..Self::default() };
        let place = directory.state.join("network");
        if matches!(plan.network, Wanted::Auto | Wanted::Host) {
            network.files = Some(NetworkFiles::write_shared(place.clone(), plan, tasks)?);
        }
        if plan.network == Wanted::None {
            network.files = NetworkFiles::write_alone(place.clone(), plan)?;
        }
        if !caller_ids::shares_user_namespace(plan) {
            return Ok(network);
        }
        let networks = if caller_ids::has_networks(plan) { tasks.len() } else { 0 };
        if networks > bridge::MAX_TASKS {
            let message = format!(
                "the job has {} tasks, and a Linux bridge connects at most {}",
                tasks.len(),
                bridge::MAX_TASKS
            );
            return Err(Error::new(Kind::Unsupported, message)
                .help("write `network: host`, or fewer `instances`; `--scale ROLE=N` runs fewer"));
        }
        if plan.network == Wanted::Job {
            network.addresses = Some(address::choose_addresses()?);
        }
        let order = SetupRequest {
            tasks: networks,
            addresses: network.addresses,
            uplink: UplinkRequest {
                place: files::create_bridge_file(&place)?,
                leads_to_host: leads_to_host(plan),
            },
            users: None,
            forwards: forwards.clone(),
            shares_ipc: shared_memory::has_job(plan),
        };
        let caller =
            plan.roles.first().map_or(Caller::IsRoot, |role| caller_ids::of_role(plan, submission, role));
        let (mut held, made) = NetworkHelper::start(order, caller)?;
        network.events = held.take_events();
        network.helper = Some(held);
        if let Some(ipc) = made.ipc {
            let sharing = plan.roles.iter().filter(|role| shared_memory::has_role(plan, role));
            network.ipc = Some((ipc, sharing.map(|role| role.name.clone()).collect()));
        }
        if let Some(addresses) = network.addresses {
            let addressed: Vec<(&TaskId, IpAddr)> = tasks
                .iter()
                .enumerate()
                .filter_map(|(task, id)| Some((id, network.address(task)?)))
                .collect();
            let uplink = made
                .resolver
                .map(|resolver| UplinkAddresses { resolver, gateway: uplink::gateway(addresses.uplink) });
            network.files = Some(NetworkFiles::write(place, plan, &addressed, uplink)?);
        }
        network.add_notes(&forwards, &made);
        Ok(network)
    }

    /// Keeps notes for the user on the result.
    fn add_notes(&mut self, forwards: &[Forward], made: &NetworkSetup) {
        if let Some(why) = &made.no_uplink {
            self.notes.push(format!("the job's network has no uplink: {why}"));
        }
        if let Some(addresses) = self.addresses.filter(|addresses| !addresses.are_free) {
            let Addresses { tasks, uplink, .. } = addresses;
            self.notes.push(format!(
                "this host uses all private address ranges; tasks cannot reach the host's own {tasks} and {uplink}"
            ));
        }
        for (forward, port) in forwards.iter().zip(&made.ports) {
            let published = Publish { port: *port, ..forward.publish.clone() };
            let place = SocketAddr::new(published.address, published.port);
            self.notes.push(match &forward.tasks[..] {
                [_] => format!("port `{}` of `{}` is at {place}", published.label, published.task),
                all => format!(
                    "port `{}` of {} instances of `{}` is at {place}",
                    published.label,
                    all.len(),
                    published.task.role
                ),
            });
            self.published.push(published);
        }
    }

    /// The network's events, once; `None` if no network was created.
    pub fn take_events(&mut self) -> Option<NetworkEvents> {
        self.events.take()
    }

    /// The network that was created, as named in the plan: `host`, `job` or `none`.
    pub fn name(&self) -> &'static str {
        match self.mode {
            Wanted::Auto | Wanted::Host => "host",
            Wanted::Job => "job",
            Wanted::None => "none",
        }
    }

    /// The address at which other tasks reach a task, or its own without a network; `None` for an unknown task number.
    pub fn address(&self, task: usize) -> Option<IpAddr> {
        let address = self.addresses.map_or(Ipv4Addr::LOCALHOST, |addresses| addresses.tasks.task(task));
        (task < self.tasks.len()).then_some(IpAddr::V4(address))
    }

    /// Changes a task's config.json so that its container joins the network and knows the names of the tasks, and
    /// returns whether there was a change.
    ///
    /// Each attempt of a task gets a network namespace that none had before, with the same address.
    ///
    /// As an unprivileged user this is applied to a configuration that [`jobc_container::rootless::adapt`] has changed
    /// already: the user namespace that it adds becomes the one that owns the network, with the same ids.
    pub fn attach(&self, task: usize, spec: &mut Spec) -> Result<bool> {
        let id = self.tasks.get(task).ok_or_else(|| no_such_task(task))?;
        let Some(held) = &self.helper else { return Ok(self.attach_files(id, spec)) };
        if held.in_user_namespace {
            join(spec, LinuxNamespaceType::User, held.proc_path().join("ns/user"))?;
        }
        if let Some((ipc, _)) = self.ipc.as_ref().filter(|(_, roles)| roles.contains(&id.role)) {
            join(spec, LinuxNamespaceType::Ipc, held.proc_path().join(format!("fd/{ipc}")))?;
        }
        if held.has_networks() {
            let namespace = held.namespace(task)?;
            join(spec, LinuxNamespaceType::Network, held.proc_path().join(format!("fd/{namespace}")))?;
        }
        self.attach_files(id, spec);
        Ok(true)
    }

    /// Gives a container the network files, and returns whether there was a change.
    fn attach_files(&self, id: &TaskId, spec: &mut Spec) -> bool {
        match (&self.files, self.mode) {
            (None, _) => false,
            (Some(files), Wanted::Auto | Wanted::Host) => files.replace_shared(spec),
            (Some(files), Wanted::Job | Wanted::None) => {
                files.bind(id, spec);
                true
            }
        }
    }

    /// Notes for the user on the network, one per line: what is missing, and where ports are published.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The ports that the host's own network has of it, with the numbers that were given.
    pub fn published(&self) -> &[Publish] {
        &self.published
    }

    /// An IPv4 stream socket (TCP) from which a task is reached; it neither blocks nor is it connected yet.
    ///
    /// Connecting it to [`Self::address`] reaches a listening process in the task, regardless of the caller's
    /// namespace.
    pub fn socket(&self, task: usize) -> Result<OwnedFd> {
        if task >= self.tasks.len() {
            return Err(no_such_task(task));
        }
        match &self.helper {
            Some(held) if held.has_networks() => held.socket(task),
            _ => socket::socket(),
        }
    }

    /// Connects to a port of a task, with a timeout. The stream is blocking.
    pub fn connect(&self, task: usize, port: u16, within: Duration) -> Result<TcpStream> {
        let address = self.address(task).ok_or_else(|| no_such_task(task))?;
        let place = SocketAddr::new(address, port);
        let socket = self.socket(task)?;
        connect_blocking(&socket, &place, within)
            .map_err(|errno| Error::system(format!("connect to {place} of `{}`", self.tasks[task]), errno))?;
        Ok(TcpStream::from(socket))
    }
}

/// Whether a name of the job stands for the host itself. Without one the tasks do not reach its loopback addresses.
fn leads_to_host(plan: &JobPlan) -> bool {
    plan.extra_hosts.values().any(|address| address == HOST_GATEWAY)
}

/// Names the namespace that a container joins, instead of a new one.
fn join(spec: &mut Spec, kind: LinuxNamespaceType, path: PathBuf) -> Result<()> {
    let namespaces = spec.linux_mut().get_or_insert_default().namespaces_mut().get_or_insert_default();
    let listed: Option<&mut LinuxNamespace> = namespaces.iter_mut().find(|namespace| namespace.typ() == kind);
    let place = listed.filter(|namespace| namespace.path().is_none()).ok_or_else(|| {
        let message =
            format!("a container that shares a namespace of its job needs its own `{kind}` namespace");
        Error::new(Kind::State, message).at("/linux/namespaces")
    })?;
    place.set_path(Some(path));
    Ok(())
}
