//! J0330 and J0331: fixed ports that instances or roles share on the host's network.

use std::collections::BTreeMap;

use jobc_schema::job::Network;
use jobc_schema::plan::PortPlan;
use jobc_schema::role::NeedState;
use jobc_schema::{BackendName, Pointer};

use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Location, Safety, Sink, codes};

/// Warns where two processes of one host would listen on one port.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    if !is_shared(view) {
        return;
    }
    several_instances(view, sink);
    several_roles(view, sink);
}

/// Whether instances share the host's network: requested, or the default of `jobc run`.
fn is_shared(view: &View<'_>) -> bool {
    match view.plan.network {
        Network::Host => true,
        Network::Auto => view.has_backend(BackendName::Oci),
        Network::Job | Network::None => false,
    }
}

fn several_instances(view: &View<'_>, sink: &mut Sink) {
    for role in &view.roles {
        let at_once = role.plan.parallel.unwrap_or(role.plan.instances).min(role.plan.instances);
        for port in role.plan.ports.iter().filter(|port| !port.auto && at_once > 1) {
            let Some(at) = place(role, port) else { continue };
            let message = format!(
                "{at_once} instances of role `{}` share the host's network and port {}: all but one on a host fail to listen",
                role.plan.name, port.number
            );
            sink.push(
                Diagnostic::warning(codes::HOST_PORT_SHARED, message)
                    .at(&at, "")
                    .note("write `network: job`, where every instance has an address of its own")
                    .note(format!("or write `auto`, and listen on `$JOBC_PORT_{}`", variable(&port.label)))
                    .set(&Pointer::ROOT.key("network"), "job")
                    .fix("write `auto`", Location::value(&at), "auto", Safety::Unsafe),
            );
        }
    }
}

fn several_roles(view: &View<'_>, sink: &mut Sink) {
    let mut listeners: BTreeMap<u16, Vec<&RoleView<'_>>> = BTreeMap::new();
    for role in &view.roles {
        for port in role.plan.ports.iter().filter(|port| !port.auto && place(role, port).is_some()) {
            listeners.entry(port.number).or_default().push(role);
        }
    }
    listeners.retain(|_, roles| roles.len() > 1);
    if listeners.is_empty() {
        return;
    }
    let stages: BTreeMap<&str, usize> = view
        .plan
        .stages
        .iter()
        .enumerate()
        .flat_map(|(number, names)| names.iter().map(move |name| (name.as_str(), number)))
        .collect();
    for (number, roles) in listeners {
        for pair in roles.windows(2) {
            let (first, second) = (pair[0], pair[1]);
            if !may_overlap(first, second, &stages) {
                continue;
            }
            let (a, b) = (&first.plan.name, &second.plan.name);
            let message = format!("roles `{a}` and `{b}` share the host's network and port {number}");
            let place = |role: &RoleView<'_>| {
                let port = role.plan.ports.iter().find(|port| port.number == number && !port.auto);
                port.and_then(|port| place(role, port)).unwrap_or_else(|| role.at())
            };
            sink.push(
                Diagnostic::warning(codes::HOST_PORT_TWICE, message)
                    .at(&place(second), "")
                    .at(&place(first), "the same port here")
                    .note("give each its own number, or write `auto`")
                    .set(&place(second), "auto"),
            );
        }
    }
}

/// Whether two roles may run at the same time: they are in the same stage, or one waits only for the start of the
/// other.
fn may_overlap(a: &RoleView<'_>, b: &RoleView<'_>, stages: &BTreeMap<&str, usize>) -> bool {
    let waits = |x: &RoleView<'_>, y: &RoleView<'_>| {
        x.plan.needs.iter().any(|need| need.role == y.plan.name && need.state != NeedState::Succeeded)
    };
    let stage = |role: &RoleView<'_>| stages.get(role.plan.name.as_str());
    stage(a) == stage(b) || waits(a, b) || waits(b, a)
}

/// Where the job file sets a port number; `None` for a port added by a framework.
fn place(role: &RoleView<'_>, port: &PortPlan) -> Option<Pointer> {
    use jobc_schema::resources::Port;
    let written = role.spec?.resources.as_ref()?.ports.get(&port.label)?;
    let at = role.at().keys(["resources", "ports", &port.label]);
    Some(if matches!(written, Port::Rules(_)) { at.key("port") } else { at })
}

fn variable(label: &str) -> String {
    label.to_ascii_uppercase().replace('-', "_")
}
