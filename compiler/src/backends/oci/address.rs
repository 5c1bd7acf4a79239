//! Addresses and ports of a job whose tasks all run on one host.

use std::collections::BTreeMap;

use jobc_schema::job::Network;
use jobc_schema::plan::{JobPlan, PortPlan, RolePlan};
use jobc_schema::{BackendName, Pointer};

use crate::backend::Address;
use crate::backend::tasks::Task;
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Where the tasks of one job find each other.
pub(super) struct AddressBook<'a> {
    network: Network,
    /// Whether the nodes are only known when a batch script runs, which then fills in placeholders.
    is_open: bool,
    roles: BTreeMap<&'a str, &'a RolePlan>,
}

/// The view of one task.
pub(super) struct TaskAddresses<'a> {
    places: &'a AddressBook<'a>,
    task: Task<'a>,
}

impl<'a> AddressBook<'a> {
    /// The addresses of a job.
    pub(super) fn new(job: &'a JobPlan) -> Self {
        Self {
            network: job.network,
            is_open: job.target.settings.backends.contains(&BackendName::Slurm),
            roles: job.roles.iter().map(|role| (&*role.name, role)).collect(),
        }
    }

    /// The view of one task.
    pub(super) fn for_task(&'a self, task: Task<'a>) -> TaskAddresses<'a> {
        TaskAddresses { places: self, task }
    }

    /// The number of an instance's port: its own if instances have their own addresses.
    pub(super) fn number(&self, port: &PortPlan, index: u32) -> u64 {
        match self.network {
            Network::Job | Network::None => u64::from(port.number),
            Network::Auto | Network::Host => port.shared_base.map_or(u64::from(port.number), |base| {
                u64::from(base) + u64::from(index) * u64::from(port.count)
            }),
        }
    }
}

impl Address for TaskAddresses<'_> {
    fn index(&self) -> String {
        self.task.index.to_string()
    }

    fn rank(&self, offset: u32) -> String {
        (u64::from(self.task.index) + u64::from(offset)).to_string()
    }

    fn host(&self, role: &str, index: Option<u32>) -> String {
        if self.places.is_open {
            return format!("@jobc:host:{role}:{}@", index.unwrap_or(self.task.index));
        }
        match self.places.network {
            Network::Job => format!("{role}-{}", index.unwrap_or(self.task.index)),
            Network::Auto | Network::Host | Network::None => "127.0.0.1".to_owned(),
        }
    }

    fn port(&self, role: &str, label: &str, index: Option<u32>) -> String {
        let port = self.places.roles.get(role).and_then(|role| role.port(label));
        let index = index.unwrap_or(self.task.index);
        match port {
            Some(port) if self.places.is_open && (port.auto || port.shared_base.is_some()) => {
                open_port(role, label, index, 0)
            }
            Some(port) => self.places.number(port, index).to_string(),
            None => String::new(),
        }
    }

    fn ports(&self, role: &str, label: &str, index: Option<u32>, count: u32) -> String {
        let index = index.unwrap_or(self.task.index);
        let first = self.port(role, label, Some(index));
        let number = |more: u32| match first.parse::<u32>() {
            Ok(first) => (first + more).to_string(),
            Err(_) => open_port(role, label, index, more),
        };
        (0..count).map(number).collect::<Vec<_>>().join(",")
    }

    fn instances(&self, role: &str) -> u32 {
        self.places.roles.get(role).map_or(0, |role| role.instances)
    }
}

/// The placeholder of a port that a Slurm batch script chooses.
fn open_port(role: &str, label: &str, index: u32, more: u32) -> String {
    format!("@jobc:port:{role}:{label}:{index}+{more}@")
}

/// Reports port numbers above 65535.
pub(super) fn check_ports(job: &JobPlan, places: &AddressBook<'_>, sink: &mut Sink) {
    for role in &job.roles {
        for port in &role.ports {
            let last =
                places.number(port, role.instances.saturating_sub(1)) + u64::from(port.count).max(1) - 1;
            if last > u64::from(u16::MAX) {
                let message = format!(
                    "port `{}` of the last instance of `{}` would be {last}, but the maximum is 65535",
                    port.label, role.name
                );
                sink.push(
                    Diagnostic::error(codes::PORT_ABOVE_RANGE, message)
                        .at(&role.at().keys(["resources", "ports", &port.label]), "")
                        .note(format!(
                            "the {} instances share one address; write `network: job`, or fewer instances or ports",
                            role.instances
                        ))
                        .set(&Pointer::ROOT.key("network"), "job"),
                );
            }
        }
    }
}
