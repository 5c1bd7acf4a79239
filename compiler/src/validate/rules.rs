//! What a schema cannot say, one idea a file; each rule looks at the document, so that it points at the very key.

mod amounts;
pub(super) mod foreign_file;
mod image;
mod lists;
mod matrix;
mod one_of;
mod role;
mod storage;
mod target;

use jobc_schema::Pointer;

use crate::diagnostic::{Diagnostic, codes};
use crate::document::{Entry, Node};

use super::place;
use super::report::Report;

/// Checks the rules of job files.
pub(super) fn check_job(report: &mut Report<'_>) {
    let document = report.document;
    let root = &document.root;
    needs_roles(root, report);
    one_of::secrets(root, report);
    matrix::check(root, report);
    storage::names(root, report);
    lists::job(root, report);
    amounts::job(root, report);
    image::check(&Pointer::ROOT, root, report);
    for (at, entry) in below(root, &Pointer::ROOT, "images") {
        image::block(&at, &entry.value, report);
    }
    for (at, entry) in below(root, &Pointer::ROOT, "roles") {
        role::check(&at, &entry.value, report);
        one_of::role(&at, &entry.value, report);
        image::check(&at, &entry.value, report);
        lists::role(&at, &entry.value, report);
        amounts::role(&at, &entry.value, report);
    }
}

/// Checks the rules of `targets.yaml`.
pub(super) fn check_targets(report: &mut Report<'_>) {
    let document = report.document;
    target::check(&document.root, report);
}

/// A job has roles, unless a template brings them.
fn needs_roles(root: &Node, report: &mut Report<'_>) {
    let entries = root.entries();
    let Some(first) = entries.first() else { return };
    if root.get("roles").is_some() || root.get("uses").is_some() {
        return;
    }
    // Who wrote `services:` or `run:` at the top was told already, yet not that nothing would run.
    report.push(
        Diagnostic::error(codes::ROLES_MISSING, "the job has no `roles`")
            .at_place(report.key(&Pointer::ROOT.key(&first.key)), "")
            .note("write what runs, each under a name of its own: `roles: {train: {run: python train.py}}`"),
    );
}

/// The entries of a map under a key, with their places.
fn below<'a>(node: &'a Node, at: &Pointer, key: &str) -> impl Iterator<Item = (Pointer, &'a Entry)> {
    let at = at.key(key);
    let entries = node.get(key).map_or(&[][..], Node::entries);
    entries.iter().map(move |entry| (at.key(&entry.key), entry))
}

/// Reports keys of one map that exclude each other; the first is the one that is marked.
fn exclude(report: &mut Report<'_>, at: &Pointer, keys: &[&str], why: &str) {
    let [first, rest @ ..] = keys else { return };
    let names: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
    let (last, others) = names.split_last().map_or(("", &[][..]), |(last, others)| (last.as_str(), others));
    let mut diagnostic = Diagnostic::error(
        codes::EXCLUSIVE,
        format!("{} and {last} exclude each other{}", others.join(", "), place::within(&place::segments(at))),
    )
    .at_place(report.key(&at.key(first)), "");
    for key in rest {
        diagnostic = diagnostic.at_place(report.key(&at.key(key)), "and here");
    }
    report.push(diagnostic.note(why));
}

/// The keys of a map that are among some.
fn present<'k>(node: &Node, keys: &[&'k str]) -> Vec<&'k str> {
    keys.iter().copied().filter(|key| node.get(key).is_some()).collect()
}
