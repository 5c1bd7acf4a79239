//! How the tasks of a job reach each other, the machine and the world.
//!
//! | `network` | what a task has |
//! |---|---|
//! | `host`, `auto` | the machine's own network; nothing is made |
//! | `none` | a network namespace with `lo` and nothing else |
//! | `job` | a network namespace with `eth0`, whose address is on a network that this job's tasks alone are on |
//!
//! A job's network is a [bridge](wire) in a namespace of its own, a veth(4) from it to each task, and the [way out](uplink).
//! It is made and held by a [process of its own](holder), so that none of it is seen in the machine's network and none of it
//! outlives the job's supervisor. As a normal user that process makes a user namespace, which the job's containers share: to
//! join a network one needs rights over it.

mod address;
mod error;
mod files;
mod held;
mod holder;
mod namespace;
mod nat;
mod netlink;
mod news;
mod order;
mod ports;
mod program;
mod publish;
mod socket;
mod uplink;
mod wire;

pub(crate) use socket::connect_blocking;

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use jobc_schema::job::Network as Wanted;
use jobc_schema::plan::{JobPlan, ProbePlan};
use oci_spec::runtime::{LinuxNamespace, LinuxNamespaceType, Spec};

use crate::folder::Folder;
use crate::submission::{Publish, Submission};
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::id::TaskId;

use address::Addresses;
use error::no_such_task;
use files::Files;
use held::Held;
pub use holder::main as hold;
pub use news::{Change, News};
use order::Made;
pub use program::COMMAND;
use publish::Forward;

/// The network of a job, as long as it lives. Dropping it takes away what was made.
#[derive(Debug)]
pub struct Network {
    wanted: Wanted,
    tasks: Vec<TaskId>,
    /// The addresses of the job's own network.
    addresses: Option<Addresses>,
    held: Option<Held>,
    files: Option<Files>,
    notes: Vec<String>,
    published: Vec<Publish>,
    news: Option<News>,
}

impl Network {
    /// Makes what the plan's `network` asks for; `tasks` are counted as in [`crate::lifecycle`].
    ///
    /// # Errors
    ///
    /// What this machine or user cannot have, and a port to be published that is taken. Nothing is left then. That there is no
    /// way out of the job's network is no error, but a [note](Self::notes).
    pub fn make(plan: &JobPlan, tasks: &[TaskId], folder: &Folder, submission: &Submission) -> Result<Self> {
        let forwards = ports::forwards(plan, tasks, &submission.publish)?;
        let mut network = Self {
            wanted: plan.network,
            tasks: tasks.to_vec(),
            addresses: None,
            held: None,
            files: None,
            notes: Vec::new(),
            published: Vec::new(),
            news: None,
        };
        if plan.network != Wanted::Job && !(plan.network == Wanted::None && is_probed(plan)) {
            return Ok(network);
        }
        if tasks.len() > wire::MOST {
            let message = format!("{} tasks, where a network of Linux connects {}", tasks.len(), wire::MOST);
            return Err(Error::new(Kind::Unsupported, message)
                .help("write `network: host`, or fewer `instances`; `--scale ROLE=N` runs fewer"));
        }
        if plan.network == Wanted::Job {
            network.addresses = Some(address::choose()?);
        }
        let place = folder.state.join("network");
        let (mut held, made) = Held::start(network.addresses, tasks.len(), &forwards, files::begin(&place)?)?;
        network.news = held.news();
        network.held = Some(held);
        if network.addresses.is_some() {
            let addressed: Vec<(&TaskId, IpAddr)> = tasks
                .iter()
                .enumerate()
                .filter_map(|(task, id)| Some((id, network.address(task)?)))
                .collect();
            let resolver = made.resolver.map(IpAddr::V4);
            network.files = Some(Files::write(place, &plan.name, &addressed, resolver)?);
        }
        network.tell(&forwards, &made);
        Ok(network)
    }

    /// Keeps what a person should know of what was made.
    fn tell(&mut self, forwards: &[Forward], made: &Made) {
        if let Some(why) = &made.no_way_out {
            self.notes.push(format!("the job's network has no way out: {why}"));
        }
        if let Some(addresses) = self.addresses.filter(|addresses| !addresses.are_free) {
            let Addresses { tasks, uplink, .. } = addresses;
            self.notes.push(format!(
                "this machine uses all private addresses; tasks do not reach its own {tasks} and {uplink}"
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

    /// What becomes of it from now on, once; nothing where nothing was made.
    pub fn take_news(&mut self) -> Option<News> {
        self.news.take()
    }

    /// What was made, in the plan's word: `host`, `job` or `none`.
    pub fn name(&self) -> &'static str {
        match self.wanted {
            Wanted::Auto | Wanted::Host => "host",
            Wanted::Job => "job",
            Wanted::None => "none",
        }
    }

    /// Where a task is reached by the others, or by itself where there is no network; nothing for a number that no task has.
    pub fn address(&self, task: usize) -> Option<IpAddr> {
        let address = self.addresses.map_or(Ipv4Addr::LOCALHOST, |addresses| addresses.tasks.task(task));
        (task < self.tasks.len()).then_some(IpAddr::V4(address))
    }

    /// Changes a task's config.json so that its container is on the network, and says whether there was anything to change.
    ///
    /// Each attempt of a task gets a network namespace that none had before, with the same address.
    ///
    /// As a normal user this is done to a configuration that [`jobc_container::rootless::adapt`] has changed already: the user namespace
    /// that it adds becomes the one that the network belongs to, with the same ids.
    pub fn attach(&self, task: usize, spec: &mut Spec) -> Result<bool> {
        let Some(held) = &self.held else { return Ok(false) };
        let id = self.tasks.get(task).ok_or_else(|| no_such_task(task))?;
        let namespace = held.namespace(task)?;
        join(spec, LinuxNamespaceType::Network, held.place().join(format!("fd/{namespace}")))?;
        if held.users {
            join(spec, LinuxNamespaceType::User, held.place().join("ns/user"))?;
        }
        if let Some(files) = &self.files {
            files.bind(id, spec);
        }
        Ok(true)
    }

    /// What a person should know of the network, a line each: what it lacks, and where ports are published.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The ports that the machine's own network has of it, with the numbers that were given.
    pub fn published(&self) -> &[Publish] {
        &self.published
    }

    /// An IPv4 stream socket (TCP) from which a task is reached; it neither blocks nor is it connected yet.
    ///
    /// Whoever connects it to [`Self::address`] reaches what listens in the task, wherever the caller is.
    pub fn socket(&self, task: usize) -> Result<OwnedFd> {
        if task >= self.tasks.len() {
            return Err(no_such_task(task));
        }
        self.held.as_ref().map_or_else(socket::socket, |held| held.socket(task))
    }

    /// Connects to a port of a task, within some time; the stream blocks.
    pub fn connect(&self, task: usize, port: u16, within: Duration) -> Result<TcpStream> {
        let address = self.address(task).ok_or_else(|| no_such_task(task))?;
        let place = SocketAddr::new(address, port);
        let socket = self.socket(task)?;
        connect_blocking(&socket, &place, within).map_err(|errno| {
            Error::machine(format!("connect to {place} of `{}`", self.tasks[task]), errno)
        })?;
        Ok(TcpStream::from(socket))
    }
}

/// Names the namespace that a container joins, in place of a new one.
fn join(spec: &mut Spec, kind: LinuxNamespaceType, path: PathBuf) -> Result<()> {
    let namespaces = spec.linux_mut().get_or_insert_default().namespaces_mut().get_or_insert_default();
    let listed: Option<&mut LinuxNamespace> = namespaces.iter_mut().find(|namespace| namespace.typ() == kind);
    let place = listed.filter(|namespace| namespace.path().is_none()).ok_or_else(|| {
        let message = format!("a container of a job's network has no `{kind}` namespace of its own");
        Error::new(Kind::State, message).at("/linux/namespaces")
    })?;
    place.set_path(Some(path));
    Ok(())
}

/// Whether a role's readiness is a port that must be connected to.
fn is_probed(plan: &JobPlan) -> bool {
    let probes = plan.roles.iter().filter_map(|role| role.ready.as_ref());
    probes.into_iter().any(|ready| matches!(ready.probe, ProbePlan::Port(_) | ProbePlan::Http { .. }))
}
