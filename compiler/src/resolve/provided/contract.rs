//! The variables of jobc that a role gets although it does not name them, because nothing else tells its tasks: who they
//! are, where the others are that run at the same time, and ports whose numbers the target chooses.
//!
//! Between two members of `distributed` the framework's own variables tell it, and in a job from OpenPAI the `PAI_*`
//! variables do.

use std::collections::BTreeSet;

use jobc_schema::BackendName;
use jobc_schema::job::Compat;
use jobc_schema::plan::{JobPlan, RolePlan};
use jobc_schema::role::NeedState;

use super::{INDEX, INSTANCES, ROLE, addresses, port_variable};
use crate::resolve::framework::RENDEZVOUS;
use crate::resolve::list_limits::MAX_LISTED_ROLES;

/// The names of these variables of a role that sees these roles.
pub(super) fn contract(plan: &JobPlan, role: &RolePlan, seen: &[&RolePlan]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    if plan.compat.contains(&Compat::Openpai) {
        return names;
    }
    let is_member = is_member(plan, role);
    let others: Vec<&RolePlan> =
        seen.iter().filter(|other| needs_address(plan, role, other)).copied().collect();
    let finds_itself = !is_member && (role.at_once() > 1 || !others.is_empty());
    let chooses_ports = plan.target.settings.backends.contains(&BackendName::Openpai);
    for port in &role.ports {
        let is_chosen = (port.auto || chooses_ports) && !(is_member && port.label == RENDEZVOUS);
        if is_chosen || finds_itself {
            names.insert(port_variable(&port.label));
        }
    }
    if !is_member && (role.instances > 1 || finds_itself) {
        names.extend([INDEX, INSTANCES].map(str::to_owned));
        names.extend((!others.is_empty()).then(|| ROLE.to_owned()));
    }
    for other in others.into_iter().chain(finds_itself.then_some(role)) {
        names.extend(addresses(other).into_iter().map(|(name, _)| name));
    }
    names
}

/// Whether a role may look for another one that nothing else leads it to: both run at the same time, are not combinations
/// of one matrix, and no framework connects them.
fn needs_address(plan: &JobPlan, role: &RolePlan, other: &RolePlan) -> bool {
    let is_same = role.name == other.name || role.matrix.is_some() && role.declared() == other.declared();
    let is_connected = is_member(plan, role) && is_member(plan, other);
    !is_same && !is_connected && !has_ended(plan, other, role) && !has_ended(plan, role, other)
}

fn is_member(plan: &JobPlan, role: &RolePlan) -> bool {
    plan.distributed
        .iter()
        .flat_map(|distributed| &distributed.members)
        .any(|member| member.role == role.name)
}

/// Whether a role has ended when another one starts, because that one needs its success, or needs a role that did.
///
/// A large job is not searched: what a role of one sees are the roles that it needs itself.
fn has_ended(plan: &JobPlan, earlier: &RolePlan, later: &RolePlan) -> bool {
    let (mut todo, mut found) = (vec![later], BTreeSet::new());
    while let Some(role) = todo.pop() {
        for need in &role.needs {
            let is_whole = need.state == NeedState::Succeeded && need.min >= earlier.instances;
            if need.role == earlier.name && is_whole {
                return true;
            }
            if plan.roles.len() <= MAX_LISTED_ROLES && found.insert(&need.role) {
                todo.extend(plan.role(&need.role));
            }
        }
    }
    false
}
