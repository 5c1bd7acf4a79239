//! The ports of tasks that are published on the host.
//!
//! `publish: host` in the job file publishes a port under the same number on the host; further instances get the
//! numbers after it. `publish: service` publishes one port for programs on this host, which is distributed over all
//! instances. `--publish` names one task's port and takes precedence over both.

use std::net::{IpAddr, Ipv4Addr};

use jobc_schema::job::Network;
use jobc_schema::plan::{JobPlan, PortPlan, RolePlan};
use jobc_schema::resources::Publish as Wanted;

use super::publish::Forward;
use crate::submission::Publish;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::id::TaskId;

/// The forwards of a job with a network of its own.
///
/// # Errors
///
/// A task or port that does not exist, a number above the last port, and what no other network than the job's can have.
pub(super) fn forwards(plan: &JobPlan, tasks: &[TaskId], requested: &[Publish]) -> Result<Vec<Forward>> {
    if let (false, Some(publish)) = (plan.network == Network::Job, requested.first()) {
        return Err(cannot_publish(plan.network, publish));
    }
    if plan.network != Network::Job {
        return Ok(Vec::new());
    }
    let mut forwards = Vec::new();
    for publish in requested {
        let role = plan.role(&publish.task.role);
        let port = role.and_then(|role| role.port(&publish.label));
        let number = tasks.iter().position(|task| *task == publish.task);
        let (Some(role), Some(number)) = (role, number) else {
            let names: Vec<&str> = plan.roles.iter().map(|role| &*role.name).collect();
            let message = format!("cannot publish a port of `{}`: no such task", publish.task);
            return Err(Error::new(Kind::Config, message)
                .help(format!("the roles are `{}`, and instances are numbered from 0", names.join("`, `"))));
        };
        let port = port.ok_or_else(|| {
            let message = format!("role `{}` has no port `{}`", role.name, publish.label);
            let labels: Vec<&str> = role.ports.iter().map(|port| &*port.label).collect();
            Error::new(Kind::Config, message).help(match &labels[..] {
                [] => "it has none: declare them in `resources: {ports: …}`".to_owned(),
                _ => format!("it has `{}`", labels.join("`, `")),
            })
        })?;
        add(&mut forwards, port, publish, &[number], publish.port)?;
    }
    for role in &plan.roles {
        for port in &role.ports {
            add_planned(&mut forwards, role, port, tasks, requested)?;
        }
    }
    Ok(forwards)
}

/// The job file's setting for a role's port.
fn add_planned(
    forwards: &mut Vec<Forward>,
    role: &RolePlan,
    port: &PortPlan,
    tasks: &[TaskId],
    requested: &[Publish],
) -> Result<()> {
    let instances = tasks.iter().enumerate().filter(|(_, task)| task.role == role.name);
    let publish = |address: Ipv4Addr, task: &TaskId| Publish {
        address: IpAddr::V4(address),
        port: port.number,
        task: task.clone(),
        label: port.label.clone(),
    };
    match port.publish {
        Wanted::None => {}
        Wanted::Host => {
            for (number, task) in instances {
                let already = |requested: &&Publish| requested.task == *task && requested.label == port.label;
                if requested.iter().any(|requested| already(&requested)) {
                    continue;
                }
                let first = u64::from(port.number) + u64::from(task.index) * u64::from(port.count);
                let first = u16::try_from(first).map_err(|_| port_out_of_range(task, port))?;
                add(forwards, port, &publish(Ipv4Addr::UNSPECIFIED, task), &[number], first)?;
            }
        }
        Wanted::Service => {
            let numbers: Vec<usize> = instances.map(|(number, _)| number).collect();
            let Some(first) = numbers.first().and_then(|number| tasks.get(*number)) else { return Ok(()) };
            add(forwards, port, &publish(Ipv4Addr::LOCALHOST, first), &numbers, port.number)?;
        }
    }
    Ok(())
}

/// Adds the forwards of a label, which may name several ports; `first` is the first one's number on the host.
fn add(
    forwards: &mut Vec<Forward>,
    port: &PortPlan,
    publish: &Publish,
    tasks: &[usize],
    first: u16,
) -> Result<()> {
    for offset in 0..port.count {
        let plus = |number: u16| {
            let sum = u32::from(number) + offset;
            u16::try_from(sum).map_err(|_| port_out_of_range(&publish.task, port))
        };
        // 0 is any free one, for each of several.
        let here = if first == 0 { 0 } else { plus(first)? };
        let publish = Publish { port: here, ..publish.clone() };
        forwards.push(Forward { publish, tasks: tasks.to_vec(), port: plus(port.number)? });
    }
    Ok(())
}

fn port_out_of_range(task: &TaskId, port: &PortPlan) -> Error {
    let message = format!("port `{}` of `{task}` would be published above 65535, the last port", port.label);
    Error::new(Kind::Config, message)
        .help(format!("choose another with `--publish PORT:{task}:{}`", port.label))
}

/// Why `--publish` has no meaning on a network that is not the job's own.
fn cannot_publish(wanted: Network, publish: &Publish) -> Error {
    let Publish { task, label, .. } = publish;
    if wanted == Network::None {
        let message = format!("port `{label}` of `{task}` cannot be published: the job has `network: none`");
        return Error::new(Kind::Unsupported, message).help("write `network: job`");
    }
    let message =
        format!("port `{label}` of `{task}` cannot be published: it is on the host's network already");
    Error::new(Kind::Unsupported, message).help("leave `--publish` out, or write `network: job`")
}

#[cfg(test)]
mod tests;
