//! The numbers of ports that a Slurm job takes by its own number, as its script computed them.

use jobc_schema::plan::{JobPlan, PortPlan};

/// The first port that the backend gives out, and how many there are.
const FIRST: u32 = 10_240;
const COUNT: u32 = 22_528;

/// The number of a port by its label: fixed by the user, or at its place after the first port of the job.
///
/// The places are those that the backend counts: ports that the user leaves open, by role and label, for each instance.
pub(crate) fn number(plan: &JobPlan, first: u16, role: &str, index: u32, label: &str) -> Option<u16> {
    let mut next = 0_u32;
    for other in &plan.roles {
        for port in &other.ports {
            let is_open = port.auto || port.shared_base.is_some();
            if other.name == role && port.label == label {
                let number =
                    if is_open { u32::from(first) + next + index * port.count } else { port.number.into() };
                return u16::try_from(number).ok();
            }
            if is_open {
                next = next.saturating_add(port.count.saturating_mul(other.instances));
            }
        }
    }
    None
}

/// The first port of a job in the addresses that its script wrote: `declare -- jobc_port="10240"`.
pub(crate) fn first(addresses: &str) -> Option<u16> {
    let line = addresses.lines().find_map(|line| line.split_once("jobc_port="))?.1;
    line.trim_matches('"').parse().ok()
}

/// The first port by the number of the Slurm job, `job=7`, as a script without a supervisor computes it.
pub(crate) fn first_of_job(plan: &JobPlan, answer: &str) -> Option<u16> {
    let job: u32 = answer.lines().find_map(|line| line.strip_prefix("job="))?.trim().parse().ok()?;
    let open = |port: &&PortPlan| port.auto || port.shared_base.is_some();
    let ports = plan.roles.iter().flat_map(|role| {
        role.ports.iter().filter(open).map(|port| port.count.saturating_mul(role.instances))
    });
    let total = ports.fold(0_u32, u32::saturating_add).clamp(1, COUNT);
    u16::try_from(FIRST + job % (COUNT / total) * total).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_port_is_read_from_the_addresses() {
        let text =
            "declare -- jobc_directory=\"/x\"\ndeclare -- jobc_port=\"10312\"\ndeclare -a jobc_hosts_a=()\n";
        assert_eq!(first(text), Some(10_312));
        assert_eq!(first("declare -- jobc_group=\"job\"\n"), None);
        assert_eq!(first("job=7\n"), None);
    }
}
