//! How the tasks of a job reach each other, the machine and the world.
//!
//! | `network` | what a task has |
//! |---|---|
//! | `host`, `auto` | the machine's own network; nothing is made |
//! | `none` | a network namespace with `lo` and nothing else, made with its container |
//! | `job` | a network namespace with an address on a network that only this job's tasks are on |

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

use jobc_schema::job::Network as Wanted;
use jobc_schema::plan::JobPlan;
use oci_spec::runtime::Spec;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::error::{Error, Kind, Result};
use crate::job::submission::{Publish, Submission};
use crate::job::{Folder, TaskId};

/// The network of a job, as long as it lives. Dropping it takes away what was made.
#[derive(Debug)]
pub struct Network {
    wanted: Wanted,
    tasks: usize,
    notes: Vec<String>,
    published: Vec<Publish>,
}

impl Network {
    /// Makes what the plan's `network` asks for; `tasks` are counted as in [`crate::lifecycle`].
    ///
    /// # Errors
    ///
    /// What this machine or user cannot have, and a port to be published that is taken. Nothing is left then.
    pub fn make(plan: &JobPlan, tasks: &[TaskId], _folder: &Folder, submission: &Submission) -> Result<Self> {
        if let (Wanted::Auto | Wanted::Host | Wanted::None, Some(publish)) =
            (plan.network, submission.publish.first())
        {
            return Err(not_to_publish(plan.network, publish));
        }
        if plan.network == Wanted::Job {
            return Err(Error::new(Kind::Unsupported, "`network: job` is not there yet"));
        }
        Ok(Self { wanted: plan.network, tasks: tasks.len(), notes: Vec::new(), published: Vec::new() })
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
        (task < self.tasks).then_some(IpAddr::V4(Ipv4Addr::LOCALHOST))
    }

    /// Changes a task's config.json so that its container is on the network.
    ///
    /// As a normal user this is done to a configuration that [`crate::rootless::adapt`] has changed already.
    pub fn attach(&self, _task: usize, _spec: &mut Spec) -> Result<()> {
        Ok(())
    }

    /// What a person should know of the network, a line each: what it lacks, and where ports are published.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The ports that the machine's own network has of it, with the numbers that were given.
    pub fn published(&self) -> &[Publish] {
        &self.published
    }

    /// An IPv4 stream socket (TCP) of the network that a task is on; it neither blocks nor is it connected yet.
    ///
    /// Whoever connects it to [`Self::address`] reaches what listens in the task, wherever the caller is.
    pub fn socket(&self, _task: usize) -> Result<OwnedFd> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)
            .map_err(|errno| Error::machine("make a socket", errno))
    }

    /// Connects to a port of a task, within some time; the stream blocks.
    pub fn connect(&self, task: usize, port: u16, within: Duration) -> std::io::Result<TcpStream> {
        let address = self.address(task).ok_or(std::io::ErrorKind::NotFound)?;
        TcpStream::connect_timeout(&SocketAddr::new(address, port), within)
    }
}

/// Why `--publish` has no meaning on a network that is not the job's own.
fn not_to_publish(wanted: Wanted, publish: &Publish) -> Error {
    let Publish { task, label, .. } = publish;
    if wanted == Wanted::None {
        return Error::new(
            Kind::Unsupported,
            format!("port `{label}` of `{task}` cannot be published: `network: none`"),
        )
        .help("write `network: job`");
    }
    let message =
        format!("port `{label}` of `{task}` cannot be published: it is on the machine's network already");
    Error::new(Kind::Unsupported, message).help("leave `--publish` out, or write `network: job`")
}
