//! Amounts that are well-formed but meaningless: `0.3KiB`, `99999999d`, `0.0001` CPUs.

use jobc_schema::Pointer;

use crate::diagnostic::{Diagnostic, codes};
use crate::document::{Node, Value};

use super::super::forms::{BYTES, CPUS, DURATION, ENERGY};
use super::super::report::{Report, source_text};
use super::super::{amounts, expression, place};
use super::keys::below;

/// The durations of a job, and the energy of its budget.
pub(super) fn job(root: &Node, report: &mut Report<'_>) {
    for path in [
        &["timeout"][..],
        &["grace_period"],
        &["preemption", "grace"],
        &["retry", "backoff"],
        &["stall", "after"],
        &["idle", "after"],
    ] {
        check(&Pointer::ROOT, root, path, DURATION, report);
    }
    check(&Pointer::ROOT, root, &["budget", "energy"], ENERGY, report);
    preflight(&Pointer::ROOT, root, report);
}

/// The amounts and durations of checks before the command.
fn preflight(at: &Pointer, parent: &Node, report: &mut Report<'_>) {
    let Some(Value::Sequence(checks)) = parent.get("preflight").map(|checks| &checks.value) else { return };
    for (number, one) in checks.iter().enumerate() {
        let at = at.key("preflight").index(number);
        for (key, form) in [
            ("disk", BYTES),
            ("allreduce", BYTES),
            ("clock", DURATION),
            ("network", DURATION),
            ("timeout", DURATION),
        ] {
            check(&at, one, &[key], form, report);
        }
    }
}

/// The amounts and durations of a role.
pub(super) fn role(at: &Pointer, role: &Node, report: &mut Report<'_>) {
    for path in [&["timeout"][..], &["grace_period"], &["retry", "backoff"], &["stall", "after"]] {
        check(at, role, path, DURATION, report);
    }
    preflight(at, role, report);
    for key in ["delay", "every", "try_timeout", "timeout"] {
        check(at, role, &["ready", key], DURATION, report);
    }
    check(at, role, &["resources", "cpu"], CPUS, report);
    for path in [&["memory"][..], &["shm"], &["disk"], &["gpu", "memory"], &["gpu", "share", "memory"]] {
        let path: Vec<&str> = std::iter::once("resources").chain(path.iter().copied()).collect();
        check(at, role, &path, BYTES, report);
    }
    if let Some(resources) = role.get("resources") {
        let at = at.key("resources");
        for (_, entry) in below(resources, &at, "hugepages") {
            check(&at, resources, &["hugepages", &entry.key], BYTES, report);
        }
        for (_, entry) in below(resources, &at, "io") {
            for key in ["read", "write"] {
                check(&at, resources, &["io", &entry.key, key], BYTES, report);
            }
        }
    }
}

/// Checks one amount, if it is set and was not already reported.
pub(super) fn check(at: &Pointer, node: &Node, path: &[&str], form: &str, report: &mut Report<'_>) {
    let Some(node) = path.iter().try_fold(node, |node, key| node.get(key)) else { return };
    if !matches!(node.value, Value::String(_) | Value::Number { .. }) {
        return;
    }
    let text = source_text(node);
    if expression::has(&text) {
        return;
    }
    let Err(error) = amounts::parse(form, &text) else { return };
    let at = at.keys(path.iter().copied());
    if report.is_refused(&at) {
        return;
    }
    let subject = place::subject(&place::segments(&at));
    let (wrong, instead) = error.0.split_once("; ").unwrap_or((&error.0, ""));
    let diagnostic = Diagnostic::error(codes::BAD_AMOUNT, format!("{subject}: {wrong}"));
    report.push(diagnostic.at_place(report.value(&at), "").note(instead));
}
