//! J0344: a command that ends at once because it goes to the background; J0343: work there beside a server.

use crate::check::command::Command;
use crate::check::endless::{never_ends, serves};
use crate::check::view::{RoleView, View};
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Warns where the last program of a script is in the background and nothing waits for it, and where work is there
/// before a server that never exits.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in &view.roles {
        sink.push(match (role.commands.last(), never_ends(view, role)) {
            (Some(last), None) if last.background => ends(role, last.program())
                .note("leave the last `&` out, or end the script with `wait`"),
            (Some(last), None) => {
                let Some((program, stays)) = daemon(last) else { continue };
                let found = ends(role, program).note(format!("write `{stays}`, which stays in the foreground"));
                found.reword(&role.run_at(), program, stays)
            }
            (Some(_), Some(server)) => {
                let Some(work) = role.commands.iter().find(|command| is_work(command)) else { continue };
                let message = format!(
                    "`{server}` in role `{}` never exits, so the job continues after `{}` in the background has ended, or failed",
                    role.plan.name,
                    work.program()
                );
                Diagnostic::warning(codes::JOB_NEVER_ENDS, message)
                    .at(&role.run_at(), "")
                    .note(format!("put `{server}` in the background, and the work last"))
            }
            (None, _) => continue,
        });
    }
}

fn ends(role: &RoleView<'_>, program: &str) -> Diagnostic {
    let message = format!(
        "the script of role `{}` ends while `{program}` is in the background: the instance ends with it, and the program is killed",
        role.plan.name
    );
    Diagnostic::warning(codes::ENDS_IN_BACKGROUND, message).at(&role.run_at(), "")
}

/// A program that puts itself in the background, as it is written, and what keeps it in the foreground.
fn daemon(command: &Command) -> Option<(&'static str, &'static str)> {
    let has = |word: &str| command.arguments().iter().any(|own| own.contains(word));
    match command.program() {
        "ray" if has("start") && !has("--block") => Some(("ray start", "ray start --block")),
        "nginx" if !has("daemon off") && !has("-t") => Some(("nginx", "nginx -g 'daemon off;'")),
        "sshd" if !has("-D") && !has("-i") => Some(("sshd", "sshd -D")),
        _ => None,
    }
}

/// Whether a command in the background is a training program or the like.
fn is_work(command: &Command) -> bool {
    command.background && !serves(command) && (command.is_python() || command.launcher().is_some())
}
