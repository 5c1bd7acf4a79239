//! `mounts`.

use std::path::{Component, Path};

use oci_spec::runtime::{LinuxNamespaceType, Mount, Spec};

use super::findings::Findings;
use super::process::has_own_namespace;
use crate::config::MountOptions;
use jobc_sys::id_map::IdMaps;

pub(super) fn check(spec: &Spec, findings: &mut Findings) {
    for (index, mount) in spec.mounts().iter().flatten().enumerate() {
        check_mount(spec, mount, &format!("/mounts/{index}"), findings);
    }
}

fn check_mount(spec: &Spec, mount: &Mount, place: &str, findings: &mut Findings) {
    let destination = mount.destination();
    findings.check_container_path(format!("{place}/destination"), destination);
    findings.check_text(format!("{place}/destination"), &destination.to_string_lossy());
    if destination.is_absolute() && is_root(destination) {
        let message = "a mount would hide the container's whole root";
        findings.error(format!("{place}/destination"), message, "set the root in `root`");
    }
    let source = mount.source().as_deref().filter(|source| !source.as_os_str().is_empty());
    if let Some(source) = source {
        findings.check_text(format!("{place}/source"), &source.to_string_lossy());
    }
    let kind = mount.typ().as_deref().unwrap_or_default();
    findings.check_text(format!("{place}/type"), kind);
    let options = match MountOptions::of(mount, place) {
        Ok(options) => options,
        Err(errors) => return findings.0.extend(errors),
    };
    check_id_mapping(spec, mount, &options, place, findings);
    if options.bind.is_some() {
        if source.is_none() {
            findings.error(
                format!("{place}/source"),
                "a bind mount without a source",
                "write the source path",
            );
        }
    } else if matches!(kind, "" | "none") {
        let help = "write `type`, such as `tmpfs`, or `bind` or `rbind` in `options`";
        findings.error(place, "neither a file system nor a bind mount", help);
    }
}

/// The id mapping of a mount. Maps without an option count as `idmap`, as in runc.
fn check_id_mapping(
    spec: &Spec,
    mount: &Mount,
    options: &MountOptions,
    place: &str,
    findings: &mut Findings,
) {
    match IdMaps::of_mount(mount, place) {
        Ok(Some(_)) if options.bind.is_none() => {
            let help = "remove the mappings; files in a new file system belong to its creator";
            findings.error(format!("{place}/uidMappings"), "only a bind mount can be id-mapped", help);
        }
        Ok(None) if options.id_map.is_some() && !has_own_namespace(spec, LinuxNamespaceType::User) => {
            findings.error(
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
