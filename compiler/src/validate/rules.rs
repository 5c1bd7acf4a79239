//! Rules that a schema cannot express, one idea per file; each rule reads the document, so that it points at the key.

mod amounts;
mod blank;
pub(super) mod foreign_file;
mod image;
mod keys;
mod lists;
mod matrix;
mod one_of;
mod role;
mod signal;
mod storage;
mod target;

use jobc_schema::Pointer;

use crate::diagnostic::{Diagnostic, codes};
use crate::document::Node;
use crate::suggest;

use super::report::Report;
use keys::below;

/// Checks the rules of job files.
pub(super) fn check_job(report: &mut Report<'_>) {
    let document = report.document;
    let root = &document.root;
    needs_roles(root, report);
    one_of::secrets(root, report);
    matrix::check(&Pointer::ROOT, root, report);
    one_of::metrics(&Pointer::ROOT, root, report);
    one_of::progress(&Pointer::ROOT, root, report);
    one_of::notices(root, report);
    one_of::preflight(&Pointer::ROOT, root, report);
    one_of::retry(&Pointer::ROOT, root, report);
    storage::names(root, report);
    signal::job(root, report);
    lists::job(root, report);
    amounts::job(root, report);
    image::check(&Pointer::ROOT, root, report);
    for (at, entry) in below(root, &Pointer::ROOT, "images") {
        image::block(&at, &entry.value, report);
        blank::image(&at, &entry.value, report);
    }
    let job_image = root.get("image");
    if let Some(image) = job_image {
        blank::image(&Pointer::ROOT.key("image"), image, report);
    }
    for (at, entry) in below(root, &Pointer::ROOT, "roles") {
        role::check(&at, &entry.value, report);
        blank::role(&at, &entry.value, job_image, report);
        if let Some(image) = entry.value.get("image") {
            blank::image(&at.key("image"), image, report);
        }
        one_of::role(&at, &entry.value, report);
        matrix::check(&at, &entry.value, report);
        one_of::metrics(&at, &entry.value, report);
        one_of::progress(&at, &entry.value, report);
        one_of::preflight(&at, &entry.value, report);
        one_of::retry(&at, &entry.value, report);
        image::check(&at, &entry.value, report);
        lists::role(&at, &entry.value, report);
        amounts::role(&at, &entry.value, report);
        signal::role(&at, &entry.value, report);
    }
}

/// Checks the rules of `targets.yaml`.
pub(super) fn check_targets(report: &mut Report<'_>) {
    let document = report.document;
    target::check(&document.root, report);
}

/// A job needs roles, unless a template provides them.
fn needs_roles(root: &Node, report: &mut Report<'_>) {
    let entries = root.entries();
    let Some(first) = entries.first() else { return };
    // `role:` was reported as a misspelling.
    if entries.iter().any(|entry| suggest::nearest(&entry.key, ["roles"]).is_some()) {
        return;
    }
    if root.get("roles").is_some() || root.get("uses").is_some() {
        return;
    }
    // `services:` or `run:` at the top level was already reported, but not that nothing would run.
    report.push(
        Diagnostic::error(codes::ROLES_MISSING, "the job has no `roles`")
            .at_place(report.key(&Pointer::ROOT.key(&first.key)), "")
            .note("write what runs, each under a name of its own: `roles: {train: {run: python train.py}}`"),
    );
}
