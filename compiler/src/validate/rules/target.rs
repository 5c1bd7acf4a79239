//! The rules of `targets.yaml`.

use jobc_schema::Pointer;

use crate::diagnostic::{Diagnostic, codes};
use crate::document::{Node, Value};
use crate::suggest;

use super::super::forms::DURATION;
use super::super::report::Report;
use super::keys::{below, exclude, present};
use super::one_of::exactly_one;
use super::{amounts, lists};

/// Checks all targets.
pub(super) fn check(root: &Node, report: &mut Report<'_>) {
    defaults(root, report);
    lists::twice(&Pointer::ROOT, root, &["default"], report);
    for (at, entry) in below(root, &Pointer::ROOT, "targets") {
        let target = &entry.value;
        unused_settings(&at, target, report);
        lists::twice(&at, target, &["backends"], report);
        if let Some(kubernetes) = target.get("kubernetes") {
            let at = at.key("kubernetes");
            amounts::check(&at, kubernetes, &["ttl"], DURATION, report);
            if let Some(queue) = kubernetes.get("queue")
                && let keys @ [_, _] = &present(queue, &["kueue", "volcano"])[..]
            {
                exclude(report, &at.key("queue"), keys, "a job waits in one queue");
            }
            for (at, entry) in below(kubernetes, &at, "storage") {
                storage(&at, &entry.value, report);
            }
        }
        if let Some(openpai) = target.get("openpai") {
            for (at, entry) in below(openpai, &at.key("openpai"), "roles") {
                if let keys @ [_, _] = &present(&entry.value, &["sku_type", "pinned_cell"])[..] {
                    exclude(report, &at, keys, "a pinned cell has its own kind of SKU");
                }
            }
        }
    }
}

/// Data has exactly one of five sources; `ephemeral: false` is none.
fn storage(at: &Pointer, node: &Node, report: &mut Report<'_>) {
    let ephemeral = node.get("ephemeral").is_some_and(|e| e.value == Value::Bool(true));
    let others = present(node, &["pvc", "host_path", "nfs"]);
    if others.len() == 1 && !ephemeral {
        return;
    }
    exactly_one(report, at, node, &["pvc", "host_path", "nfs", "ephemeral", "claim"], "what provides it");
}

/// Checks that the names in `default` exist.
fn defaults(root: &Node, report: &mut Report<'_>) {
    let targets: Vec<&str> =
        root.get("targets").map_or(&[][..], Node::entries).iter().map(|e| e.key.as_str()).collect();
    for (index, item) in root.get("default").map_or(&[][..], Node::items).iter().enumerate() {
        let Some(name) = item.as_str().filter(|name| !targets.contains(name)) else { continue };
        let at = Pointer::ROOT.key("default").index(index);
        let mut diagnostic = Diagnostic::error(codes::UNKNOWN_DEFAULT, format!("unknown target `{name}`"))
            .at_place(report.value(&at), "")
            .note(format!("the targets are {}", suggest::list(targets.iter().copied())));
        if let Some(near) = suggest::nearest(name, targets.iter().copied()) {
            diagnostic =
                report.rewrite(diagnostic, &at, &report.string(near), crate::diagnostic::Safety::Safe);
        }
        report.push(diagnostic);
    }
}

/// Whether the tasks of a target on Slurm run bundles, as they do by default.
fn runs_bundles(target: &Node) -> bool {
    let container = target.get("slurm").and_then(|slurm| slurm.get("container")).and_then(Node::as_str);
    matches!(container, None | Some("jobc" | "oci"))
}

/// Reports settings for a backend that the target does not use.
fn unused_settings(at: &Pointer, target: &Node, report: &mut Report<'_>) {
    let Some(backends) = target.get("backends") else { return };
    let written: Vec<&str> = backends.items().iter().filter_map(Node::as_str).collect();
    for key in present(target, &["oci", "kubernetes", "openpai", "slurm"]) {
        // A misspelling is reported where it is.
        if written.contains(&key) || suggest::nearest(key, written.iter().copied()).is_some() {
            continue;
        }
        let mut backends = written.clone();
        let bundles = key == "slurm" && runs_bundles(target);
        if bundles && !written.contains(&"oci") {
            backends.push("oci");
        }
        backends.push(key);
        let list = backends.join(", ");
        let message = format!("unused settings `{key}`: `{key}` is not in `backends`");
        let mut found = Diagnostic::warning(codes::UNUSED_SETTINGS, message)
            .at_place(report.key(&at.key(key)), "")
            .at_place(report.value(&at.key("backends")), "")
            .note(format!("write `backends: [{list}]`, or remove the settings"));
        if bundles {
            found = found.note("`slurm` writes the batch script, and `oci` the bundles that it starts");
        }
        report.push(report.set(found, &at.key("backends"), backends));
    }
    for plugin in target.get("plugins").map_or(&[][..], Node::entries) {
        let name = plugin.key.as_str();
        if written.contains(&name) || suggest::nearest(name, written.iter().copied()).is_some() {
            continue;
        }
        report.push(
            Diagnostic::warning(
                codes::UNUSED_SETTINGS,
                format!("unused settings `plugins.{name}`: `{name}` is not in `backends`"),
            )
            .at_place(report.key(&at.keys(["plugins", name])), "")
            .at_place(report.value(&at.key("backends")), "")
            .note("add the plug-in to `backends`, or remove the settings"),
        );
    }
    if target.get("ssh").is_some() && !written.iter().any(|backend| ["oci", "slurm"].contains(backend)) {
        let message = "unused settings `ssh`: neither `oci` nor `slurm` is in `backends`";
        report.push(
            Diagnostic::warning(codes::UNUSED_SETTINGS, message)
                .at_place(report.key(&at.key("ssh")), "")
                .at_place(report.value(&at.key("backends")), "")
                .note("add `oci` to run jobs on the machine, or `slurm` to submit them there"),
        );
    }
}
