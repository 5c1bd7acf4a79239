//! Checks that the types of a CDI file cannot express: names, versions, and fields that must not be empty (SPEC.md; the
//! CDI library has the same rules in `pkg/cdi/spec.go` and `pkg/parser`).

use super::{Device, Edits, Spec};

/// The versions that there are.
pub const SUPPORTED_VERSIONS: [&str; 10] =
    ["0.1.0", "0.2.0", "0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0"];

/// Validates a whole file.
///
/// # Errors
///
/// The first thing that is wrong, with its place.
pub(super) fn check(spec: &Spec) -> Result<(), String> {
    let place = |version: &str| SUPPORTED_VERSIONS.iter().position(|known| *known == version);
    let Some(version) = place(&spec.cdi_version) else {
        let newest = SUPPORTED_VERSIONS[SUPPORTED_VERSIONS.len() - 1];
        return Err(format!("cdiVersion: unknown version `{}`; the newest is {newest}", spec.cdi_version));
    };
    let needed = minimum_version(spec);
    if place(needed).is_some_and(|needed| version < needed) {
        return Err(format!(
            "cdiVersion: {} lacks features of this file, which needs {needed}",
            spec.cdi_version
        ));
    }
    let (vendor, class) = spec.kind.split_once('/').ok_or("kind: not VENDOR/CLASS")?;
    if !is_valid_name(vendor, "_-.") || !is_valid_name(class, "_-.") || class.len() > 63 {
        return Err(format!("kind: `{}` is not VENDOR/CLASS", spec.kind));
    }
    if spec.devices.is_empty() {
        return Err("devices: no device".to_owned());
    }
    for (index, device) in spec.devices.iter().enumerate() {
        let at = |what: String| format!("devices[{index}]: {what}");
        check_device(device).map_err(at)?;
        if spec.devices[..index].iter().any(|earlier| earlier.name == device.name) {
            return Err(at(format!("`{}` is duplicated", device.name)));
        }
    }
    check_edits(&spec.container_edits).map_err(|what| format!("containerEdits.{what}"))
}

fn check_device(device: &Device) -> Result<(), String> {
    let name = device.name.as_bytes();
    let ends = [name.first(), name.last()].into_iter().flatten().all(u8::is_ascii_alphanumeric);
    let whole = name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_-.:".contains(byte));
    if name.is_empty() || !ends || !whole {
        return Err(format!("invalid device name `{}`", device.name));
    }
    if device.container_edits.is_empty() {
        return Err(format!("`{}` has no edits", device.name));
    }
    check_edits(&device.container_edits).map_err(|what| format!("containerEdits.{what}"))
}

/// A word that begins with a letter and ends with a letter or a digit, with some punctuation between.
fn is_valid_name(word: &str, signs: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.ends_with(|c: char| c.is_ascii_alphanumeric())
        && word.chars().all(|c| c.is_ascii_alphanumeric() || signs.contains(c))
}

/// The stages of hooks.
const HOOK_STAGES: [&str; 6] =
    ["prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"];

fn check_edits(edits: &Edits) -> Result<(), String> {
    for (index, item) in edits.env.iter().enumerate() {
        if item.split_once('=').is_none_or(|(name, _)| name.is_empty()) {
            return Err(format!("env[{index}]: `{item}` is not NAME=VALUE"));
        }
    }
    for (index, node) in edits.device_nodes.iter().enumerate() {
        let at = |what: String| Err(format!("deviceNodes[{index}].{what}"));
        if node.path.as_os_str().is_empty() {
            return at("path: it is empty".to_owned());
        }
        if let Some(kind) = node.kind.as_deref().filter(|kind| !["", "b", "c", "u", "p"].contains(kind)) {
            return at(format!("type: `{kind}` is not one of b, c, u and p"));
        }
        let permissions = node.permissions.as_deref().unwrap_or_default();
        if permissions != "none" && !permissions.chars().all(|letter| "rwm".contains(letter)) {
            return at(format!("permissions: `{permissions}` are not letters of `rwm`"));
        }
    }
    for (index, mount) in edits.mounts.iter().enumerate() {
        if mount.host_path.as_os_str().is_empty() || mount.container_path.as_os_str().is_empty() {
            return Err(format!("mounts[{index}]: a path is empty"));
        }
    }
    for (index, hook) in edits.hooks.iter().enumerate() {
        if !HOOK_STAGES.contains(&hook.hook_name.as_str()) {
            return Err(format!("hooks[{index}].hookName: unknown stage `{}`", hook.hook_name));
        }
        if hook.path.as_os_str().is_empty() {
            return Err(format!("hooks[{index}].path: it is empty"));
        }
    }
    Ok(())
}

/// The lowest version that has all that a file uses.
pub fn minimum_version(spec: &Spec) -> &'static str {
    let edits = || spec.devices.iter().map(|device| &device.container_edits).chain([&spec.container_edits]);
    let any = |test: fn(&Edits) -> bool| edits().any(test);
    let class = spec.kind.split_once('/').map_or("", |(_, class)| class);
    let newer = |edits: &Edits| {
        edits
            .intel_rdt
            .as_ref()
            .is_some_and(|rdt| !rdt.schemata.is_empty() || rdt.enable_monitoring.is_some())
    };
    if any(|edits| !edits.net_devices.is_empty()) || edits().any(newer) {
        "1.1.0"
    } else if any(|edits| edits.intel_rdt.is_some() || !edits.additional_gids.is_empty()) {
        "0.7.0"
    } else if !spec.annotations.is_empty()
        || spec.devices.iter().any(|device| !device.annotations.is_empty())
        || class.contains('.')
    {
        "0.6.0"
    } else if any(|edits| edits.device_nodes.iter().any(|node| node.host_path.is_some()))
        || spec.devices.iter().any(|device| device.name.starts_with(|c: char| c.is_ascii_digit()))
    {
        "0.5.0"
    } else if any(|edits| edits.mounts.iter().any(|mount| mount.kind.is_some())) {
        "0.4.0"
    } else {
        "0.3.0"
    }
}
