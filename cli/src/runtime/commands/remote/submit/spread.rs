//! Ports of jobs that share those of a host: a machine, or with `network: host` a node of Kubernetes. Each run gets numbers
//! that depend on its name. On Slurm the script of a job chooses.

use std::collections::{BTreeMap, BTreeSet};

use jobc_job::admission::ports;
use jobc_remote::place::SharedPorts;
use jobc_schema::digest::Digest;
use jobc_schema::job::Network;
use jobc_schema::plan::JobPlan;
use jobc_sys::error::Result;

/// The first number that a run may get, and how many.
const FIRST: u16 = 20_000;
const COUNT: u64 = 10_000;

/// Gives the ports that jobc chooses the numbers of the run.
pub(super) fn ports(job: &mut JobPlan, shared: SharedPorts) -> Result<()> {
    let of_nodes = shared == SharedPorts::OfNodes && job.network == Network::Host;
    if !of_nodes && shared != SharedPorts::OfHost {
        return Ok(());
    }
    let fixed: BTreeSet<u16> = job
        .roles
        .iter()
        .flat_map(|role| role.ports.iter().filter(|port| !port.auto).map(move |port| (role, port)))
        .flat_map(|(role, port)| ports::numbers_of(port, role.instances))
        .collect();
    let number = u64::from_str_radix(&Digest::of(job.name.as_bytes()).hex()[..8], 16).unwrap_or_default();
    let base = FIRST + u16::try_from(number % COUNT).unwrap_or_default();
    if shared == SharedPorts::OfHost {
        // The number that every plan has would be free for the first job only.
        let usual = job.distributed.as_ref().map(|distributed| distributed.port);
        let is_taken = |port: u16| port < base || Some(port) == usual || fixed.contains(&port);
        return ports::choose(job, is_taken, |_| None);
    }
    on_nodes(job, base, &fixed);
    Ok(())
}

/// On nodes each instance has the number itself, and roles may have the same one.
fn on_nodes(job: &mut JobPlan, base: u16, fixed: &BTreeSet<u16>) {
    let mut counts: BTreeMap<u16, u32> = BTreeMap::new();
    for port in job.roles.iter().flat_map(|role| &role.ports).filter(|port| port.auto) {
        let count = counts.entry(port.number).or_default();
        *count = (*count).max(port.count.max(1));
    }
    let mut next = u32::from(base);
    let mut numbers: BTreeMap<u16, u16> = BTreeMap::new();
    for (old, count) in counts {
        let is_free = |first: u32| {
            (first..first + count).all(|port| u16::try_from(port).is_ok_and(|port| !fixed.contains(&port)))
        };
        let Some(first) = (next..=u32::from(u16::MAX)).find(|first| is_free(*first)) else { continue };
        next = first + count;
        numbers.extend(u16::try_from(first).map(|first| (old, first)));
    }
    for port in job.roles.iter_mut().flat_map(|role| &mut role.ports).filter(|port| port.auto) {
        port.number = numbers.get(&port.number).copied().unwrap_or(port.number);
    }
    if let Some(distributed) = &mut job.distributed {
        distributed.port = numbers.get(&distributed.port).copied().unwrap_or(distributed.port);
    }
}
