//! The name of a signal.

use jobc_schema::{Pointer, signal};

use crate::diagnostic::{Diagnostic, codes};
use crate::document::Node;
use crate::suggest;

use super::super::expression;
use super::super::report::Report;

/// Checks the signal of the contract of a job.
pub(super) fn job(root: &Node, report: &mut Report<'_>) {
    if let Some(preemption) = root.get("preemption") {
        check(&Pointer::ROOT.key("preemption"), preemption, "signal", report);
    }
}

/// Checks the signal that stops a role's tasks.
pub(super) fn role(at: &Pointer, role: &Node, report: &mut Report<'_>) {
    check(at, role, "stop_signal", report);
}

fn check(at: &Pointer, parent: &Node, key: &str, report: &mut Report<'_>) {
    let Some(text) = parent.get(key).and_then(Node::as_str) else { return };
    let at = at.key(key);
    if expression::has(text) || report.is_refused(&at) || signal::number(text).is_some() {
        return;
    }
    let name = text.to_ascii_uppercase();
    let near = suggest::nearest(name.strip_prefix("SIG").unwrap_or(&name), signal::names());
    let note = match near {
        Some(near) => format!("did you mean `SIG{near}`?"),
        None => "write a name of signal(7), such as `SIGINT` or `SIGUSR1`".to_owned(),
    };
    let diagnostic = Diagnostic::error(codes::UNKNOWN_SIGNAL, format!("unknown signal `{text}`"));
    report.push(diagnostic.at_place(report.value(&at), "").note(note));
}
