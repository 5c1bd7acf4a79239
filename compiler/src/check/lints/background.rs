//! J0344: a command that ends at once because it goes to the background.

use crate::check::view::View;
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Warns where the last program of a script is put in the background and nothing waits for it.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in &view.roles {
        let Some(last) = role.commands.last().filter(|command| command.background) else { continue };
        let message = format!(
            "the script of role `{}` ends while `{}` is in the background: the instance ends with it, and the program is killed",
            role.plan.name,
            last.program()
        );
        sink.push(
            Diagnostic::warning(codes::ENDS_IN_BACKGROUND, message)
                .at(&role.run_at(), "")
                .note("leave the last `&` out, or end the script with `wait`"),
        );
    }
}
