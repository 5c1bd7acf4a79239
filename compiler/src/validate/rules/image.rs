//! Which keys of an image block can be combined.

use jobc_schema::Pointer;

use crate::diagnostic::{Diagnostic, codes};
use crate::document::{Node, Value};

use super::super::place;
use super::super::report::Report;
use super::keys::present;
use super::one_of::exactly_one;

/// Keys that `steps` replaces.
const BUILD: &[&str] = &["apt", "conda", "python", "copy", "run"];

/// Checks the `image` of a job or a role.
pub(super) fn check(at: &Pointer, owner: &Node, report: &mut Report<'_>) {
    if let Some(image) = owner.get("image") {
        block(&at.key("image"), image, report);
    }
}

/// Checks an image block; there is nothing to check in a reference.
pub(super) fn block(at: &Pointer, image: &Node, report: &mut Report<'_>) {
    let Value::Mapping(entries) = &image.value else { return };
    let forms = ["from", "use", "dockerfile", "host"];
    let chosen = present(image, &forms);
    if chosen.len() != 1 {
        let what = "what the image is: built on another, one of `images`, from a Dockerfile of yours, or the host's files";
        return exactly_one(report, at, image, &forms, what);
    }
    let others: Vec<&str> = entries.iter().map(|e| e.key.as_str()).filter(|k| *k != chosen[0]).collect();
    match chosen[0] {
        "use" => {
            let why = "`use` selects a named image without changes; for changes, define another image under `images`";
            report_exclusive(report, at, "use", &others, why);
        }
        "host" => {
            let why = "the host's files are used as they are; to add packages, build an image with `from`";
            report_exclusive(report, at, "host", &others, why);
        }
        "dockerfile" => {
            let stray: Vec<&str> =
                others.into_iter().filter(|key| !["context", "target", "args"].contains(key)).collect();
            let why =
                "only `context`, `target` and `args` go with a Dockerfile; put the rest into the Dockerfile";
            report_exclusive(report, at, "dockerfile", &stray, why);
        }
        _ => {
            let stray = present(image, &["target"]);
            report_exclusive(report, at, "from", &stray, "`target` selects a stage of a `dockerfile`");
        }
    }
    if image.get("steps").is_some() {
        let stray = present(image, BUILD);
        let why = "`steps` gives the order itself; write these as steps: `- apt: [git]`";
        report_exclusive(report, at, "steps", &stray, why);
    }
    for (index, step) in image.get("steps").map_or(&[][..], Node::items).iter().enumerate() {
        let keys = ["apt", "conda", "python", "copy", "run", "env", "workdir", "user"];
        exactly_one(
            report,
            &at.key("steps").index(index),
            step,
            &keys,
            "what the step does; write a separate step for each",
        );
    }
}

/// Reports keys that cannot be combined with a given one.
fn report_exclusive(report: &mut Report<'_>, at: &Pointer, key: &str, stray: &[&str], why: &str) {
    let [first, rest @ ..] = stray else { return };
    let names: Vec<String> = stray.iter().map(|key| format!("`{key}`")).collect();
    let (go, within) = (if rest.is_empty() { "does" } else { "do" }, place::within(&place::segments(at)));
    let message = format!("{} {go} not go with `{key}`{within}", names.join(", "));
    let mut diagnostic =
        Diagnostic::error(codes::IMAGE_KEYS, message).at_place(report.key(&at.key(first)), "");
    for other in rest {
        diagnostic = diagnostic.at_place(report.key(&at.key(other)), "");
    }
    report.push(diagnostic.at_place(report.key(&at.key(key)), "beside this").note(why));
}
