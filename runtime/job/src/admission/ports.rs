//! Ports on the host's own network: numbers for those that jobc chooses, and the owners of those in the job file.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};

use jobc_schema::job::Network;
use jobc_schema::plan::{JobPlan, PortPlan};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};

use super::ledger::{Ledger, PortReservation};
use crate::port_owner::{self, PortOwner};
use jobc_sys::error::{Error, Kind, Result};

/// The first number that is tried: above the well-known services.
const FIRST_PORT: u16 = 20_000;

/// The first of the kernel's own numbers for outgoing connections (ip(7), `ip_local_port_range`): chosen last.
const FIRST_EPHEMERAL_PORT: u16 = 32_768;

/// The numbers of a role's port, one for each instance and place.
pub fn numbers_of(port: &PortPlan, instances: u32) -> impl Iterator<Item = u16> + '_ {
    // A fixed number is the same for all instances: the first that listens has it.
    let bases = if port.shared_base.is_some() { instances } else { 1 };
    (0..bases).flat_map(|index| {
        let first = port.shared_number(index);
        (first..first.saturating_add(port.count)).filter_map(|number| u16::try_from(number).ok())
    })
}

/// Assigns free numbers of this host to the ports that jobc chooses, and checks that the ports in the job file are
/// free. The result reserves all of them: it must exist until the job's supervisor has entered them.
///
/// Called between the plan and the build; a plan whose tasks have their own addresses is not changed.
///
/// # Errors
///
/// A port of the job file that is taken, with its owner if known, or no free port numbers.
pub fn choose_for(plan: &mut JobPlan, ledger: &Ledger) -> Result<Option<PortReservation>> {
    if matches!(plan.network, Network::Job | Network::None)
        || plan.roles.iter().all(|role| role.ports.is_empty())
    {
        return Ok(None);
    }
    ledger.choose_ports(|claimed| {
        choose(plan, |port| claimed(port) || !is_free(port), port_owner::of)?;
        Ok(super::claim::of(plan).ports)
    })
}

/// Gives the ports that jobc chooses the first numbers that are not taken, as they follow each other in the plan. `owner`
/// finds who has a port that is taken.
pub fn choose(
    plan: &mut JobPlan,
    taken: impl Fn(u16) -> bool,
    owner: impl Fn(u16) -> Option<PortOwner>,
) -> Result<()> {
    let mut used: BTreeSet<u16> = BTreeSet::new();
    for role in &plan.roles {
        for port in role.ports.iter().filter(|port| !port.auto) {
            for number in numbers_of(port, role.instances) {
                if taken(number) {
                    let field = format!("roles.{}.resources.ports.{}", role.name, port.label);
                    return Err(port_taken_error(number, &field, owner(number).as_ref()));
                }
                used.insert(number);
            }
        }
    }
    for role in &mut plan.roles {
        let instances = role.instances;
        for port in role.ports.iter_mut().filter(|port| port.auto) {
            let shared = if port.shared_base.is_some() { instances } else { 1 };
            let length = shared.saturating_mul(port.count.max(1));
            let written = port.shared_base.unwrap_or(u32::from(port.number));
            let start = find_free_range(written, length, |number| taken(number) || used.contains(&number))
                .ok_or_else(|| {
                    Error::new(
                        Kind::System,
                        format!(
                            "there are no {length} free ports in a row for `{}` of `{}`",
                            port.label, role.name
                        ),
                    )
                    .help("write `network: job`, so that every task has its own address")
                })?;
            if let Some(base) = &mut port.shared_base {
                *base = u32::from(start);
            } else {
                // The one number of a rendezvous, which the plan also keeps for itself.
                if let Some(distributed) = plan.distributed.as_mut().filter(|plan| plan.port == port.number) {
                    distributed.port = start;
                }
                port.number = start;
            }
            let last = u32::from(start) + length;
            used.extend((u32::from(start)..last).filter_map(|number| u16::try_from(number).ok()));
        }
    }
    Ok(())
}

/// The first number of a free range: at the plan's number, otherwise from the first port on.
fn find_free_range(written: u32, length: u32, taken: impl Fn(u16) -> bool) -> Option<u16> {
    let free =
        |start: u32| (start..start + length).all(|number| u16::try_from(number).is_ok_and(|n| !taken(n)));
    let below = u32::from(FIRST_PORT)..u32::from(FIRST_EPHEMERAL_PORT).saturating_sub(length);
    let above = u32::from(FIRST_EPHEMERAL_PORT)..(u32::from(u16::MAX) + 1).saturating_sub(length);
    let start = [written].into_iter().chain(below).chain(above).find(|&start| start > 0 && free(start))?;
    u16::try_from(start).ok()
}

/// Whether a program here could listen at a port now, at every address.
pub fn is_free(port: u16) -> bool {
    let open = |family| {
        let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None).ok()?;
        // As servers do: recently closed connections do not block the port.
        sockopt::set_socket_reuseaddr(&socket, true).ok()?;
        Some(socket)
    };
    let four = open(AddressFamily::INET)
        .is_none_or(|socket| bind(&socket, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port)).is_ok());
    let six = || {
        open(AddressFamily::INET6).is_none_or(|socket| {
            let only = sockopt::set_ipv6_v6only(&socket, true);
            let bound = bind(&socket, &SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, port, 0, 0));
            only.is_err() || bound != Err(rustix::io::Errno::ADDRINUSE)
        })
    };
    four && six()
}

fn port_taken_error(port: u16, field: &str, owner: Option<&PortOwner>) -> Error {
    let message = format!("`{field}`: port {port} is taken{}", port_owner::by(owner));
    let help = "write another number or `auto`, or `network: job`, so that every task has its own address";
    Error::new(Kind::State, message).help(port_owner::or_stop(owner, help))
}

#[cfg(test)]
mod tests;
