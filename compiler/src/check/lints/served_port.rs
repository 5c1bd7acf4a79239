//! J0382: a server that listens on another port than its role declares.

use crate::check::endless::serves;
use crate::check::view::View;
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Flags with the port of a server.
const FLAGS: [&str; 2] = ["--port", "--server.port"];

/// Warns where a role declares one port, and its server is told another number.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in &view.roles {
        let [port] = &role.plan.ports[..] else { continue };
        let last = role.commands.last().filter(|command| !port.auto && serves(command));
        let Some((flag, written)) = last.and_then(|command| command.one_of(&FLAGS)) else { continue };
        let Some(listens) = role.value(written).and_then(|value| value.parse::<u16>().ok()) else { continue };
        if (port.number..port.number.saturating_add(u16::try_from(port.count).unwrap_or(1)))
            .contains(&listens)
        {
            continue;
        }
        let message = format!(
            "role `{}` listens on port {listens}, and declares {} as `{}`: others connect to a port where nothing answers",
            role.plan.name, port.number, port.label
        );
        let at = role.at().keys(["resources", "ports", &port.label]);
        sink.push(
            Diagnostic::warning(codes::SERVED_PORT, message)
                .at(&role.run_at(), format!("`{flag}` is here"))
                .at(&at, "")
                .set(&at, listens),
        );
    }
}
