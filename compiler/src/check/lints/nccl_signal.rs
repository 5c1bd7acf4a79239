//! J0368: SIGUSR1 as the stop signal of a program that uses NCCL.

use jobc_schema::Pointer;

use crate::check::view::View;
use crate::diagnostic::{Diagnostic, Location, Safety, Sink, codes};

/// Warns about roles with several NVIDIA GPUs, of a task or of a rendezvous.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in &view.roles {
        let plan = role.plan;
        let gpus = plan.gpus().map_or(0, |gpu| gpu.count.saturating_mul(plan.instances));
        if plan.stop_signal.as_deref() != Some("SIGUSR1") || gpus < 2 {
            continue;
        }
        let at: Pointer = plan.at().key("stop_signal");
        let message = format!("NCCL may catch SIGUSR1 before the program of role `{}`", plan.name);
        sink.push(
            Diagnostic::warning(codes::NCCL_SIGNAL, message)
                .at(&at, "")
                .note("programs that save before they end handle SIGUSR2 or SIGTERM")
                .fix("write `SIGUSR2`", Location::value(&at), "SIGUSR2".to_owned(), Safety::Unsafe),
        );
    }
}
