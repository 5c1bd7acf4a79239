//! ssh between the instances of a rendezvous: whether there is any, the port, and the user that logs in.

use jobc_schema::distributed::{Distributed, Framework, Ssh};
use jobc_schema::plan::{MemberPlan, SshPlan};

use super::context::Context;
use super::launch::Launchers;

/// The user that logs in where no role has another.
pub(crate) const ROOT: &str = "root";

/// The user of a role's `user`, without its group: a name, or a number above 0.
pub(crate) fn login_user(user: &str) -> &str {
    match user.split_once(':').map_or(user, |(user, _)| user) {
        "0" => ROOT,
        user => user,
    }
}

/// By default, the user that the members run as logs in: root, or another at a port that root is not needed for.
pub(super) fn resolve_ssh(
    context: &Context<'_>,
    spec: &Distributed,
    members: &[MemberPlan],
    launch: &Launchers,
) -> Option<SshPlan> {
    let users = members.iter().filter_map(|m| context.job.roles.get(&m.role)?.user.as_deref());
    let user = users.map(login_user).find(|user| *user != ROOT).unwrap_or(ROOT);
    let usual = || SshPlan { port: if user == ROOT { 22 } else { 2222 }, user: user.to_owned() };
    match &spec.ssh {
        Some(Ssh::Switch(on)) => on.then(usual),
        Some(Ssh::Rules(rules)) => Some(SshPlan {
            port: rules.port.unwrap_or_else(|| usual().port),
            user: rules.user.clone().unwrap_or_else(|| usual().user),
        }),
        None => match spec.framework {
            // If every instance runs the command, none starts the others, so none needs to reach them.
            Framework::Mpi | Framework::Horovod | Framework::Deepspeed if !launch.is_all() => Some(usual()),
            _ => None,
        },
    }
}
