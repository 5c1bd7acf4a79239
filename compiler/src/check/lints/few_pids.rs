//! J0313: too few processes for a shell and a program with threads.

use crate::check::view::View;
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Below this even `python` with a numeric library cannot start its threads.
const MIN_PIDS: u32 = 16;

/// Warns about a limit that the command itself exceeds.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in &view.roles {
        let Some(pids) = role.plan.resources.pids.filter(|&pids| pids < MIN_PIDS) else { continue };
        let message = format!(
            "`pids: {pids}` counts threads too: a shell, a program and its threads soon need more, and fail to start"
        );
        sink.push(
            Diagnostic::warning(codes::FEW_PIDS, message)
                .at(&role.at().keys(["resources", "pids"]), "")
                .note("write for example `pids: 4096`"),
        );
    }
}
