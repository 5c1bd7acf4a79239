//! J0387: another role at this task's own address.

use jobc_schema::job::Network;

use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Sink, codes};

/// How a command or a variable names the address of its own task.
const LOCAL: [&str; 3] = ["localhost:", "127.0.0.1:", "0.0.0.0:"];

/// Warns where a role connects to its own address, at a port that only another role declares.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    // There all tasks have the address of the host.
    if view.plan.target.settings.is_host() && view.plan.network != Network::Job {
        return;
    }
    for role in &view.roles {
        let in_env = role.plan.env.keys().filter_map(|name| Some((role.env_at(name), role.constant(name)?)));
        let mut texts = std::iter::once((role.run_at(), role.text.as_str())).chain(in_env);
        let found = texts.find_map(|(at, text)| Some((at, peer(view, role, text)?)));
        let Some((at, (written, server, label))) = found else { continue };
        let message = format!(
            "`{written}` is the own address of role `{}`, and the port is that of role `{server}`: nothing answers there",
            role.plan.name
        );
        let better = format!("${{{{ hosts.{server}[0] }}}}:${{{{ ports.{server}.{label}[0] }}}}");
        sink.push(
            Diagnostic::warning(codes::PEER_AT_LOCALHOST, message)
                .at(&at, "")
                .note(format!("`{better}` is the address of its first instance"))
                .reword(&at, &written, &better),
        );
    }
}

/// The address in a text that belongs to another role, with that role and the label of its port.
fn peer<'v>(view: &'v View<'_>, role: &RoleView<'_>, text: &str) -> Option<(String, &'v str, &'v str)> {
    LOCAL.iter().find_map(|host| {
        let at = text.find(host)?;
        let digits: String = text[at + host.len()..].chars().take_while(char::is_ascii_digit).collect();
        let number: u16 = digits.parse().ok()?;
        // A server that the role itself starts has its port in the command too.
        let own = role.plan.ports.iter().any(|port| port.number == number);
        if own || text.matches(&digits).count() > text.matches(&format!("{host}{digits}")).count() {
            return None;
        }
        let others = view.plan.roles.iter().filter(|other| other.name != role.plan.name);
        let (other, port) = others
            .flat_map(|other| other.ports.iter().map(move |port| (other, port)))
            .find(|(_, port)| !port.auto && port.number == number)?;
        Some((format!("{host}{digits}"), other.name.as_str(), port.label.as_str()))
    })
}
