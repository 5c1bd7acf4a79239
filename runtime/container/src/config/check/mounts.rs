//! `mounts`.

use std::path::{Component, Path};

use oci_spec::runtime::{LinuxNamespaceType, Mount, Spec};

use super::findings::Findings;
use super::process::has;
use crate::config::MountOptions;
use jobc_sys::id_map::IdMaps;

pub(super) fn check(spec: &Spec, findings: &mut Findings) {
    for (index, mount) in spec.mounts().iter().flatten().enumerate() {
        of(spec, mount, &format!("/mounts/{index}"), findings);
    }
}

fn of(spec: &Spec, mount: &Mount, place: &str, findings: &mut Findings) {
    let destination = mount.destination();
    findings.inside(format!("{place}/destination"), destination);
    findings.text(format!("{place}/destination"), &destination.to_string_lossy());
    if destination.is_absolute() && is_root(destination) {
        let message = "a mount would hide the container's whole root";
        findings.wrong(format!("{place}/destination"), message, "set the root in `root`");
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
    owners(spec, mount, &options, place, findings);
    if options.bind.is_some() {
        if source.is_none() {
            findings.wrong(
                format!("{place}/source"),
                "a bind mount without a source",
                "write the source path",
            );
        }
    } else if matches!(kind, "" | "none") {
        let help = "write `type`, such as `tmpfs`, or `bind` or `rbind` in `options`";
        findings.wrong(place, "neither a file system nor a bind mount", help);
    }
}

/// Which owners a mount shows. Maps without a word are meant as `idmap`, as runc takes them.
fn owners(spec: &Spec, mount: &Mount, options: &MountOptions, place: &str, findings: &mut Findings) {
    match IdMaps::of_mount(mount, place) {
        Ok(Some(_)) if options.bind.is_none() => {
            let help = "remove the mappings; files in a new file system belong to its creator";
            findings.wrong(format!("{place}/uidMappings"), "only a bind mount can be id-mapped", help);
        }
        Ok(None) if options.id_map.is_some() && !has(spec, LinuxNamespaceType::User) => {
            findings.wrong(
                place,
                "the mount uses the id mappings of the container's user namespace, but the container has none",
                "write `uidMappings` and `gidMappings` for the mount",
            );
        }
        Ok(_) => {}
        Err(error) => findings.0.push(error),
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
