//! J0356: instances that log in to each other, and whose users cannot serve that.

use jobc_schema::distributed::Ssh;
use jobc_schema::{BackendName, Pointer};

use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Sink, codes};
use crate::resolve::{ROOT, login_user};

/// The first port that root is not needed for; ip(7).
const FIRST_PORT: u16 = 1024;

/// Reports roles of different users, and a port that is for root alone, where the tasks run sshd.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    let Some(ssh) = view.plan.distributed.as_ref().and_then(|distributed| distributed.ssh.as_ref()) else {
        return;
    };
    if !view.has_backend(BackendName::Kubernetes) && !view.has_backend(BackendName::Oci) {
        return;
    }
    let user = |role: &RoleView<'_>| role.plan.user.as_deref().map_or(ROOT, login_user).to_owned();
    let members = || view.roles.iter().filter(|role| role.member.is_some());
    let Some(server) = members().find(|role| user(role) != ROOT) else { return };
    let name = user(server);
    let rules = view.job.distributed.as_ref().and_then(|distributed| match &distributed.ssh {
        Some(Ssh::Rules(rules)) => Some(rules),
        _ => None,
    });
    if rules.is_none_or(|rules| rules.user.is_none())
        && let Some(other) = members().find(|role| user(role) != name)
    {
        let message = format!(
            "`{}` and `{}` have different users, so one cannot log in to the other by ssh",
            other.plan.name, server.plan.name
        );
        let at = other.at().key("user");
        sink.push(
            Diagnostic::error(codes::SSH_USER, message)
                .at_key(&at, "")
                .at(&server.at().key("user"), "the other user")
                .set(&at, name.as_str()),
        );
    }
    if ssh.port < FIRST_PORT {
        let at = Pointer::ROOT.keys(["distributed", "ssh", "port"]);
        let message = format!("the sshd of user `{name}` cannot listen on port {}", ssh.port);
        sink.push(
            Diagnostic::error(codes::SSH_USER, message)
                .at(&at, "")
                .at(&server.at().key("user"), "only root listens on ports below 1024")
                .set(&at, 2222),
        );
    }
}
