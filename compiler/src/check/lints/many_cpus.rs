//! J0314: more CPUs than hosts have.

use crate::check::view::View;
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Above this, thousandths were probably meant.
const MAX_CPUS: u64 = 1000;

/// Warns of an amount that looks like thousandths of a CPU.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    for role in &view.roles {
        let cpus = role.plan.resources.cpu_millis.unwrap_or(0) / 1000;
        if cpus < MAX_CPUS {
            continue;
        }
        let message = format!("`cpu: {cpus}` requests {cpus} logical CPUs in one instance");
        sink.push(
            Diagnostic::warning(codes::MANY_CPUS, message)
                .at(&role.at().keys(["resources", "cpu"]), "")
                .note(format!("for thousandths of a CPU, write `cpu: {cpus}m`"))
                .set(&role.at().keys(["resources", "cpu"]), format!("{cpus}m")),
        );
    }
}
