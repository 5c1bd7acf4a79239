//! `mounts`.

use std::path::{Component, Path};

use oci_spec::runtime::{Mount, Spec};

use super::Findings;
use crate::config::MountOptions;

pub(super) fn check(spec: &Spec, findings: &mut Findings) {
    for (index, mount) in spec.mounts().iter().flatten().enumerate() {
        of(mount, &format!("/mounts/{index}"), findings);
    }
}

fn of(mount: &Mount, place: &str, findings: &mut Findings) {
    let destination = mount.destination();
    findings.inside(format!("{place}/destination"), destination);
    findings.text(format!("{place}/destination"), &destination.to_string_lossy());
    if destination.is_absolute() && is_root(destination) {
        let message = "a mount would hide the container's whole root";
        findings.wrong(format!("{place}/destination"), message, "say what the root is in `root`");
    }
    let source = mount.source().as_deref().filter(|source| !source.as_os_str().is_empty());
    if let Some(source) = source {
        findings.text(format!("{place}/source"), &source.to_string_lossy());
    }
    let kind = mount.typ().as_deref().unwrap_or_default();
    findings.text(format!("{place}/type"), kind);
    let options = match MountOptions::of(mount, place) {
        Ok(options) => options,
        Err(errors) => return findings.0.extend(errors),
    };
    if options.bind.is_some() {
        if source.is_none() {
            findings.wrong(
                format!("{place}/source"),
                "a bind mount of nothing",
                "write the path of what is to be seen",
            );
        }
    } else if matches!(kind, "" | "none") {
        let help = "write `type`, such as `tmpfs`, or `bind` or `rbind` in `options`";
        findings.wrong(place, "neither a file system nor a bind mount", help);
    }
}

/// Whether a path leads to the root itself.
fn is_root(path: &Path) -> bool {
    let depth = path.components().fold(0_usize, |depth, component| match component {
        Component::Normal(_) => depth + 1,
        Component::ParentDir => depth.saturating_sub(1),
        _ => depth,
    });
    depth == 0
}
