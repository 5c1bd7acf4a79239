//! J0345: sudo in a task that cannot gain privileges.

use crate::check::view::View;
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Warns of `sudo` in an instance that runs without new privileges, as all do unless `privileged`.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in view.roles.iter().filter(|role| !role.plan.security.privileged) {
        if !role.commands.iter().any(|command| command.program() == "sudo") {
            continue;
        }
        let message = format!(
            "`sudo` in role `{}` fails: an instance can get no privileges that it did not start with",
            role.plan.name
        );
        let note = "install what is needed in the image, under `apt` or `run`, or write `user: root` on the role and leave `sudo` out";
        let found = Diagnostic::warning(codes::SUDO, message).at(&role.run_at(), "").note(note);
        let has_options = role.commands.iter().any(|command| {
            command.program() == "sudo"
                && command.arguments().first().is_some_and(|word| word.starts_with('-'))
        });
        sink.push(if has_options {
            found
        } else {
            found.reword(&role.run_at(), "sudo ", "").also(&role.at().key("user"), "root")
        });
    }
}
