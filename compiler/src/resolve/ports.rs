//! Port numbers, for instances with their own addresses and for those that share one.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use jobc_schema::Pointer;
use jobc_schema::distributed::Framework;
use jobc_schema::job::Compat;
use jobc_schema::plan::{PortPlan, Reference, RolePlan, Text};
use jobc_schema::resources::{AutoWord, Port, PortNumber, Publish};

use super::context::Context;
use super::distributed::Rendezvous;
use super::framework::RENDEZVOUS;
use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::openpai::OWN_PORTS;

/// The first port number that jobc assigns.
///
/// Above the well-known ports, below the ephemeral ports of Linux (32768).
const FIRST: u32 = 20_000;

/// The ports of every role, by the role's index.
pub(super) fn resolve_ports(
    context: &Context<'_>,
    rendezvous: Option<&Rendezvous>,
    sink: &mut Sink,
) -> Vec<Vec<PortPlan>> {
    let mut numbers = Numbers { next: FIRST, next_shared: FIRST, fixed: fixed_ranges(context) };
    let mut all = Vec::with_capacity(context.job.roles.len());
    for (name, role) in &context.job.roles {
        let at = Pointer::ROOT.keys(["roles", name, "resources", "ports"]);
        let instances = context.table[name].instances;
        let written = role.resources.iter().flat_map(|resources| &resources.ports);
        let mut ports: Vec<PortPlan> =
            written.map(|(label, port)| plan(label, port, instances, &mut numbers)).collect();
        if let Some(rendezvous) = rendezvous.filter(|r| r.listens(name))
            && !ports.iter().any(|port| port.label == RENDEZVOUS)
        {
            ports.push(meeting_port(rendezvous, instances, &mut numbers));
        }
        if context.job.compat.contains(&Compat::Openpai) {
            for label in OWN_PORTS {
                if !ports.iter().any(|port| port.label == label) {
                    ports.push(plan(label, &Port::Auto(AutoWord::Auto), instances, &mut numbers));
                }
            }
        }
        let written = role.resources.as_ref().map(|resources| &resources.ports);
        check(&ports, written.unwrap_or(&IndexMap::new()), &at, sink);
        all.push(ports);
    }
    all
}

struct Numbers {
    /// The next free number if every instance has its own address.
    next: u32,
    /// The next free number if all instances share one address.
    next_shared: u32,
    /// Numbers that users set, which are not assigned: start and end of disjoint ranges.
    fixed: BTreeMap<u32, u32>,
}

impl Numbers {
    fn take(&mut self, count: u32) -> u16 {
        let number = self.free_from(self.next, count);
        self.next = number.saturating_add(count);
        u16::try_from(number).unwrap_or(u16::MAX)
    }

    fn take_shared(&mut self, instances: u32, count: u32) -> u32 {
        let count = instances.saturating_mul(count);
        let base = self.free_from(self.next_shared, count);
        self.next_shared = base.saturating_add(count);
        base
    }

    fn free_from(&self, mut start: u32, count: u32) -> u32 {
        // Since ranges are disjoint, only the last range that begins before the end of ours matters.
        while let Some((_, &end)) =
            self.fixed.range(..start.saturating_add(count)).next_back().filter(|&(_, &end)| end > start)
        {
            start = end;
        }
        start
    }
}

/// The numbers that users set, as disjoint ranges.
fn fixed_ranges(context: &Context<'_>) -> BTreeMap<u32, u32> {
    let ports = context.job.roles.values().flat_map(|role| &role.resources).flat_map(|r| r.ports.values());
    let mut ranges: Vec<(u32, u32)> = ports
        .filter_map(|port| {
            let (number, count, _) = read(port);
            let start = u32::from(number?);
            Some((start, start.saturating_add(count)))
        })
        .collect();
    ranges.sort_unstable();
    let mut disjoint: BTreeMap<u32, u32> = BTreeMap::new();
    for (start, end) in ranges {
        match disjoint.last_entry() {
            Some(mut last) if *last.get() >= start => {
                let longer = (*last.get()).max(end);
                last.insert(longer);
            }
            _ => {
                disjoint.insert(start, end);
            }
        }
    }
    disjoint
}

/// The number if set, the count, and the scope.
fn read(port: &Port) -> (Option<u16>, u32, Publish) {
    match port {
        Port::Number(number) => (Some(*number), 1, Publish::None),
        Port::Auto(_) => (None, 1, Publish::None),
        Port::Rules(rules) => {
            let number = match rules.port {
                Some(PortNumber::Number(number)) => Some(number),
                Some(PortNumber::Auto(_)) | None => None,
            };
            (number, rules.count.unwrap_or(1), rules.publish)
        }
    }
}

fn plan(label: &str, port: &Port, instances: u32, numbers: &mut Numbers) -> PortPlan {
    let (number, count, publish) = read(port);
    let label = label.to_owned();
    match number {
        Some(number) => PortPlan { label, number, count, auto: false, shared_base: None, publish },
        None => PortPlan {
            label,
            number: numbers.take(count),
            count,
            auto: true,
            shared_base: Some(numbers.take_shared(instances, count)),
            publish,
        },
    }
}

/// The numbers of a role's own port: all of them for a range.
pub(super) fn own_port(role: &RolePlan, label: &str) -> Text {
    let (of, label) = (role.name.clone(), label.to_owned());
    Text::reference(match role.port(&label).map(|port| port.count) {
        Some(count) if count > 1 => Reference::Ports { role: of, label, index: None, count },
        _ => Reference::Port { role: of, label, index: None },
    })
}

/// The port that a framework needs, if the user does not declare it.
fn meeting_port(rendezvous: &Rendezvous, instances: u32, numbers: &mut Numbers) -> PortPlan {
    // With TensorFlow every instance listens; with others only the first instance of one role, so one number is enough.
    let shared_base =
        (rendezvous.plan.framework == Framework::Tensorflow).then(|| numbers.take_shared(instances, 1));
    PortPlan {
        label: RENDEZVOUS.to_owned(),
        number: rendezvous.plan.port,
        count: 1,
        auto: !rendezvous.port_written,
        shared_base,
        publish: Publish::None,
    }
}

fn check(ports: &[PortPlan], written: &IndexMap<String, Port>, at: &Pointer, sink: &mut Sink) {
    let range = |port: &PortPlan| (u32::from(port.number), u32::from(port.number).saturating_add(port.count));
    for (number, port) in ports.iter().enumerate() {
        let (start, end) = range(port);
        if end > 65_536 {
            sink.push(
                Diagnostic::error(
                    codes::PORT_RANGE,
                    format!("the {} ports from {start} exceed 65535", port.count),
                )
                .at(&at.key(&port.label), "")
                .note("use a lower first port, or fewer ports"),
            );
        }
        let clash = ports[..number].iter().find(|other| {
            let (other_start, other_end) = range(other);
            start < other_end && other_start < end
        });
        if let Some(other) = clash {
            let shared = start.max(u32::from(other.number));
            // A port that the user did not declare has no span.
            let place = |port: &PortPlan| {
                let own = port.label != RENDEZVOUS || !port.auto;
                if own { at.key(&port.label) } else { Pointer::ROOT.key("distributed") }
            };
            let diagnostic = Diagnostic::error(
                codes::PORT_CLASH,
                format!("ports `{}` and `{}` have the same number {shared}", other.label, port.label),
            )
            .at_key(&place(port), "the second")
            .at_key(&place(other), "the first")
            .note("give one of them another number, or `auto`");
            let taken = |number: u32| {
                ports.iter().any(|port| {
                    let (start, end) = range(port);
                    (start..end).contains(&number)
                })
            };
            let free = (start + 1..65_536).find(|number| !taken(*number));
            let own = written.get(&port.label).filter(|_| port.count == 1);
            sink.push(match (own, free) {
                (Some(Port::Rules(_)), Some(free)) => diagnostic.set(&at.key(&port.label).key("port"), free),
                (Some(_), Some(free)) => diagnostic.set(&at.key(&port.label), free),
                _ => diagnostic,
            });
        }
    }
}
