//! Maps that must have exactly one of a set of keys.

use jobc_schema::Pointer;

use crate::diagnostic::{Diagnostic, codes};
use crate::document::{Node, Value};

use super::super::place;
use super::super::report::Report;
use super::keys::{below, exclude, present};

/// The source of a secret.
pub(super) fn secrets(root: &Node, report: &mut Report<'_>) {
    for (at, entry) in below(root, &Pointer::ROOT, "secrets") {
        let what = "where the secret comes from when the job starts";
        exactly_one(report, &at, &entry.value, &["env", "file", "store"], what);
    }
}

/// The source of the metrics of the job or of a role.
pub(super) fn metrics(at: &Pointer, parent: &Node, report: &mut Report<'_>) {
    for (at, entry) in below(parent, at, "metrics") {
        let metric = &entry.value;
        exactly_one(report, &at, metric, &["log", "file"], "where the number is read");
        let (file, key) = (metric.get("file"), metric.get("key"));
        if file.is_some() && key.is_none() {
            report.push(
                Diagnostic::error(codes::MISSING_KEY, "`key` is missing next to `file`")
                    .at_place(report.key(&at.key("file")), "")
                    .note("write the key of the number in the file, as in `{file: /output/result.json, key: eval.loss}`"),
            );
        }
        if metric.get("log").is_some() && file.is_none() && key.is_some() {
            let why = "a line of the log has no keys; its number is the group of the expression";
            exclude(report, &at, &["log", "key"], why);
        }
    }
}

/// The receivers of notices.
pub(super) fn notices(root: &Node, report: &mut Report<'_>) {
    let Some(Value::Sequence(notices)) = root.get("notify").map(|notify| &notify.value) else { return };
    for (number, notice) in notices.iter().enumerate() {
        let at = Pointer::ROOT.key("notify").index(number);
        exactly_one(report, &at, notice, &["webhook", "email", "run"], "who gets the notice");
    }
}

/// The checks before the command.
pub(super) fn preflight(at: &Pointer, parent: &Node, report: &mut Report<'_>) {
    let Some(Value::Sequence(checks)) = parent.get("preflight").map(|checks| &checks.value) else { return };
    for (number, check) in checks.iter().enumerate() {
        let at = at.key("preflight").index(number);
        let kinds = ["disk", "clock", "network", "allreduce", "run"];
        exactly_one(report, &at, check, &kinds, "what is checked");
        for (key, of) in [("path", "disk"), ("timeout", "run")] {
            let is_another = check.get(of).is_none() && !present(check, &kinds).is_empty();
            if check.get(key).is_some() && is_another {
                report.push(
                    Diagnostic::error(codes::MISSING_KEY, format!("`{of}` is missing next to `{key}`"))
                        .at_place(report.key(&at.key(key)), "")
                        .note(format!("`{key}` belongs to `{of}` alone; leave it out")),
                );
            }
        }
    }
}

/// The source of the progress of the job or of a role.
pub(super) fn progress(at: &Pointer, parent: &Node, report: &mut Report<'_>) {
    let Some(progress) = parent.get("progress") else { return };
    let at = at.key("progress");
    exactly_one(report, &at, progress, &["log", "file"], "where the numbers are read");
    for key in ["done", "total"] {
        if progress.get("file").is_some() && progress.get(key).is_none() {
            report.push(
                Diagnostic::error(codes::MISSING_KEY, format!("`{key}` is missing next to `file`"))
                    .at_place(report.key(&at.key("file")), "")
                    .note("write the keys of both numbers in the file, as in `{file: /output/state.json, done: global_step, total: max_steps}`"),
            );
        } else if progress.get("file").is_none()
            && progress.get("log").is_some()
            && progress.get(key).is_some()
        {
            let why = "a line of the log has no keys; its numbers are the groups `done` and `total` of the expression";
            exclude(report, &at, &["log", key], why);
        }
    }
}

/// The exit codes of the retries of the job or of a role.
pub(super) fn retry(at: &Pointer, parent: &Node, report: &mut Report<'_>) {
    let keys = ["on_exit_codes", "never_on_exit_codes"];
    if parent.get("retry").is_some_and(|retry| present(retry, &keys).len() == keys.len()) {
        let why = "`on_exit_codes` makes all other codes final, and `never_on_exit_codes` retries all others";
        exclude(report, &at.key("retry"), &keys, why);
    }
}

/// The readiness probe of a role, the sources of its files, and the size of a slice of a GPU.
pub(super) fn role(at: &Pointer, role: &Node, report: &mut Report<'_>) {
    if let Some(ready) = role.get("ready") {
        let what = "how readiness is checked";
        exactly_one(report, &at.key("ready"), ready, &["port", "http", "exec", "log"], what);
    }
    for (at, entry) in below(role, at, "files") {
        let what = "where the file's text comes from";
        exactly_one(report, &at, &entry.value, &["content", "from", "secret"], what);
    }
    let share = role.get("resources").and_then(|r| r.get("gpu")).and_then(|g| g.get("share"));
    if let Some(share) = share
        && share.get("profile").is_some()
    {
        let others = present(share, &["memory", "cores"]);
        if !others.is_empty() {
            let keys: Vec<&str> = std::iter::once("profile").chain(others).collect();
            let why = "a MIG profile defines memory and cores of a slice";
            exclude(report, &at.keys(["resources", "gpu", "share"]), &keys, why);
        }
    }
}

/// Reports a map that has none or several of the keys; values that are not maps were already reported.
pub(super) fn exactly_one(report: &mut Report<'_>, at: &Pointer, node: &Node, keys: &[&str], what: &str) {
    if !matches!(node.value, Value::Mapping(_)) {
        return;
    }
    match &present(node, keys)[..] {
        [_] => {}
        [] => {
            let names: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
            let within = place::within(&place::segments(at));
            let message = format!("one of {} is needed{within}", place::either(&names));
            report.push(
                Diagnostic::error(codes::ONE_NEEDED, message)
                    .at_place(report.key(at), "")
                    .note(format!("it defines {what}")),
            );
        }
        several => exclude(report, at, several, &format!("exactly one of them defines {what}")),
    }
}
