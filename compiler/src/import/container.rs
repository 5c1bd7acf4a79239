//! What `docker run`, Compose and Kubernetes say alike of a container: resources, mounts, ports, variables.

mod gpus;
mod mounts;
mod network;
mod role;

use serde_json::json;

use crate::openpai::converted;
use crate::source::Span;

use super::amounts::amount;
use super::draft::Draft;
use super::nodes::{json, number, sequence, string};

pub(super) use gpus::{gpus, visible_devices};
pub(super) use mounts::{Mount, Mounted, mount, select_mounts, tmpfs, volume};
pub(super) use network::{extra_host, network, port};
pub(super) use role::Role;

/// Bytes of `512m`, `16g`, `1gb`, `100`: units are powers of 1024, and a bare number is bytes.
pub(super) fn bytes(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, unit) = text.split_at(digits);
    let factor: f64 = match unit.trim().trim_end_matches('b').trim_end_matches('i') {
        "" => 1.0,
        "k" => 1024.0,
        "m" => 1_048_576.0,
        "g" => 1_073_741_824.0,
        "t" => 1_099_511_627_776.0,
        _ => return None,
    };
    let bytes = digits.parse::<f64>().ok()? * factor;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is checked to be in range"
    )]
    (bytes.is_finite() && (0.0..1e18).contains(&bytes)).then(|| bytes.ceil() as u64)
}

/// An amount in bytes as people write it, rounded up to whole KiB.
pub(super) fn size(bytes: u64) -> String {
    amount(bytes.div_ceil(1024))
}

/// A limit in bytes at a field of `resources`.
pub(super) fn limit(role: &mut Role<'_, '_>, field: &str, text: &str, part: Span) {
    match bytes(text) {
        Some(0) => role.draft.note(part, "no limit"),
        Some(bytes) => role.field(&["resources", field], part, string(part, size(bytes))),
        None if text.contains("${{") => role.field(&["resources", field], part, string(part, text)),
        None => role.draft.invalid(part, format!("`{text}` is not an amount such as `512m` or `16g`"), ""),
    }
}

/// A limit that is a number.
pub(super) fn limit_count(role: &mut Role<'_, '_>, field: &str, text: &str, part: Span) {
    match text.parse::<u64>() {
        Ok(count) if count > 0 => role.field(&["resources", field], part, number(part, count)),
        Ok(_) => role.draft.note(part, "no limit"),
        Err(_) => role.draft.invalid(part, format!("`{text}` is not a number"), ""),
    }
}

/// A number of CPUs.
pub(super) fn cpus(role: &mut Role<'_, '_>, text: &str, part: Span) {
    match text.parse::<f64>() {
        Ok(0.0) => role.draft.note(part, "no limit"),
        Ok(count) if count > 0.0 && count < 1e6 => {
            let value = match text.parse::<u64>() {
                Ok(whole) => number(part, whole),
                Err(_) => json(part, &json!(count)),
            };
            role.field(&["resources", "cpu"], part, value);
        }
        _ if text.contains("${{") => role.field(&["resources", "cpu"], part, string(part, text)),
        _ => role.draft.invalid(part, format!("`{text}` is not a number of CPUs"), ""),
    }
}

/// `0-3,8`: certain CPUs, of which a job requests the number.
pub(super) fn cpuset(role: &mut Role<'_, '_>, text: &str, part: Span) {
    let count = text.split(',').map(|range| {
        let (from, to) = range.trim().split_once('-').unwrap_or((range.trim(), range.trim()));
        let (from, to): (u32, u32) = (from.parse().ok()?, to.parse().ok()?);
        (from <= to && to < 65_536).then(|| u64::from(to - from) + 1)
    });
    match count.sum::<Option<u64>>() {
        Some(count) => {
            role.field(&["resources", "cpu"], part, number(part, count));
            let message = format!("the CPUs {text} become their number, {count}");
            role.draft.changed(part, message, "jobc chooses the CPUs, near the GPUs");
        }
        None if text.contains("${{") => {
            role.draft.changed(part, "certain CPUs: the job has no limit", "write `resources: {cpu: N}`");
        }
        None => role.draft.invalid(part, format!("`{text}` is not a list of CPUs such as `0-3,8`"), ""),
    }
}

/// `NAME=SOFT[:HARD]`.
pub(super) fn ulimit(role: &mut Role<'_, '_>, name: &str, limits: &str, part: Span) {
    let (soft, hard) = limits.split_once(':').unwrap_or((limits, limits));
    let value = match soft.trim() {
        "-1" | "unlimited" => string(part, "unlimited"),
        soft => match soft.parse::<u64>() {
            Ok(limit) => number(part, limit),
            Err(_) => return role.draft.invalid(part, format!("`{limits}` is not a limit"), ""),
        },
    };
    if soft != hard {
        role.draft.changed(
            part,
            format!("the hard limit of `{name}` becomes that of the soft one, {soft}"),
            "",
        );
    }
    role.field(&["resources", "ulimits", name], part, value);
}

/// `HOST[:CONTAINER[:PERMISSIONS]]` of `--device` and `devices`.
pub(super) fn device(role: &mut Role<'_, '_>, text: &str, part: Span) {
    let (host, rest) = text.split_once(':').unwrap_or((text, ""));
    match host {
        "/dev/kfd" => gpu_vendor(role, "amd", part),
        _ if host.starts_with("/dev/dri") => {
            // With /dev/kfd it is a GPU of AMD, alone one of Intel or for video.
            if role.get(&["resources", "gpu"]).is_some() {
                role.draft.note(part, "comes with the GPUs");
            } else {
                gpu_vendor(role, "intel", part);
            }
        }
        _ if host.starts_with("/dev/nvidia") => visible_devices(role, "all", part),
        _ if host.starts_with("/dev/") => {
            if !rest.is_empty() && !rest.starts_with(host) {
                return role.draft.refuse(
                    part,
                    "the device has another name in the container",
                    "jobc gives devices under their own names",
                );
            }
            role.push(&["resources", "devices"], part, string(part, host));
        }
        _ if host.contains('=') => gpus::cdi(role, text, part),
        _ => role.draft.invalid(part, format!("`{text}` is not a device below /dev"), ""),
    }
}

fn gpu_vendor(role: &mut Role<'_, '_>, vendor: &str, part: Span) {
    role.field(&["resources", "gpu"], part, json(part, &json!({"count": 1, "vendor": vendor})));
    role.draft.changed(
        part,
        format!("the container sees every GPU of {vendor}: the job requests one"),
        "write the number as `gpu: {count: …}` in a job file",
    );
}

/// A capability to add or drop.
pub(super) fn capability(role: &mut Role<'_, '_>, verb: &str, name: &str, part: Span) {
    let name = name.to_ascii_uppercase();
    let name = name.strip_prefix("CAP_").unwrap_or(&name);
    role.push(&["security", "capabilities", verb], part, string(part, name));
}

/// `--security-opt` and `security_opt`.
pub(super) fn security(role: &mut Role<'_, '_>, text: &str, part: Span) {
    let (name, value) = text.split_once(['=', ':']).unwrap_or((text, ""));
    match (name, value) {
        ("no-new-privileges", _) => role.draft.note(part, "the default"),
        ("label", _) => role.draft.note(part, "jobc sets no label of SELinux"),
        ("seccomp" | "apparmor", "unconfined") if role.get(&["resources", "gpu", "vendor"]).is_some() => {
            role.draft.note(part, "the recipe of AMD for debuggers: programs on GPUs do not need it");
        }
        ("seccomp" | "apparmor", _) => role.draft.changed(
            part,
            format!("the {name} profile is that of jobc, not `{value}`"),
            "most programs need no other; a debugger needs `security: {capabilities: {add: [SYS_PTRACE]}}`",
        ),
        _ => role.draft.refuse(
            part,
            format!("`{text}` is not a security option that jobc knows"),
            "leave it out",
        ),
    }
}

/// `--restart` and `restart`.
pub(super) fn restart(draft: &mut Draft<'_>, path: &[&str], text: &str, part: Span) {
    let (policy, count) = text.split_once(':').map_or((text, None), |(policy, count)| (policy, Some(count)));
    match (policy, count.map(str::parse::<u32>)) {
        ("no" | "" | "false", _) => draft.note(part, "the default"),
        ("always" | "unless-stopped" | "any" | "none", _) => {
            draft.note(part, "a job ends when its command does; `retry` repeats failures");
        }
        ("on-failure", None) => {
            draft.field(path, part, json(part, &json!({"max": "unlimited"})));
        }
        ("on-failure", Some(Ok(count))) => draft.field(path, part, json(part, &json!({ "max": count }))),
        _ => draft.invalid(
            part,
            format!("unknown restart policy `{text}`"),
            "the policies are `no`, `on-failure[:N]`, `always` and `unless-stopped`",
        ),
    }
}

/// A variable with its value, or one of the user who starts the job.
pub(super) fn variable(role: &mut Role<'_, '_>, name: &str, value: Option<&str>, part: Span) {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_name =
        !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(is_part);
    let meant = name.trim_end_matches(|c: char| !is_part(c));
    if !is_name && meant != name && meant.chars().all(is_part) && !meant.is_empty() {
        return role.draft.changed(
            part,
            format!("no program reads a variable called `{name}`: the job has none"),
            format!("write `{meant}` if that is meant"),
        );
    }
    if !is_name {
        return role.draft.changed(
            part,
            format!("`{name}` is not set: shells accept no such name"),
            format!("write the command of the image behind it: `run: [env, \"{name}=VALUE\", COMMAND]`"),
        );
    }
    if name == "NVIDIA_VISIBLE_DEVICES" && value.is_some_and(|value| !value.contains("${{")) {
        return visible_devices(role, value.unwrap_or_default(), part);
    }
    let text = value.map_or_else(|| secret(role.draft, name, part), str::to_owned);
    role.field(&["env", name], part, string(part, text));
}

/// Declares the secret that is in a variable of the user, and returns the reference to it.
pub(super) fn secret(draft: &mut Draft<'_>, name: &str, part: Span) -> String {
    let secret = name.to_ascii_lowercase();
    draft.set(&["secrets", &secret, "env"], part, string(part, name));
    format!("${{{{ secrets.{secret} }}}}")
}

/// Declares the parameter that takes a variable of the user, and returns the reference to it.
pub(super) fn param(draft: &mut Draft<'_>, name: &str, default: Option<&str>, part: Span) -> String {
    draft.set(&["params", name, "default", "env"], part, string(part, name));
    if let Some(default) = default {
        draft.set(&["params", name, "default", "default"], part, string(part, default));
    }
    format!("${{{{ params.{name} }}}}")
}

/// Whether the name of a variable is that of a secret.
pub(super) fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let is_token = name.split('_').any(|word| word.ends_with("TOKEN"));
    is_token
        || ["SECRET", "PASSWORD", "PASSWD", "API_KEY", "ACCESS_KEY", "CREDENTIAL"]
            .iter()
            .any(|word| name.contains(word))
}

/// A readiness check by a command of the shell.
pub(super) fn health_command(command: &str, part: Span) -> crate::document::Node {
    let words = ["/bin/sh", "-c", command].map(|word| string(part, word));
    sequence(part, words.to_vec())
}

/// A duration of Go, such as `1m30s`, as jobc writes it; less than a second is one.
pub(super) fn duration(text: &str) -> Option<String> {
    let mut seconds = 0.0;
    let mut rest = text.trim();
    if let Ok(bare) = rest.parse::<u32>() {
        return Some(super::amounts::duration(u64::from(bare)));
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').filter(|at| *at > 0)?;
        let value: f64 = rest[..digits].parse().ok()?;
        let unit = rest[digits..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |at| digits + at);
        seconds += value
            * match &rest[digits..unit] {
                "ns" | "us" | "µs" => 0.0,
                "ms" => 0.001,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3600.0,
                "d" => 86_400.0,
                _ => return None,
            };
        rest = &rest[unit..];
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is checked to be in range"
    )]
    (seconds < 1e9).then(|| super::amounts::duration((seconds.ceil() as u64).max(1)))
}

/// The name of an image without registry, tag and digest, as a job's name.
pub(super) fn image_name(image: &str) -> Option<String> {
    let name = image.split('@').next()?.rsplit('/').next()?.split(':').next()?;
    converted(name, crate::openpai::MAX_JOB_NAME, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_and_durations() {
        let sizes = ["16g", "512m", "1gb", "64M", "1.5g", "1000"].map(|text| bytes(text).map(size).unwrap());
        assert_eq!(sizes, ["16GiB", "512MiB", "1GiB", "64MiB", "1536MiB", "1KiB"]);
        assert_eq!(bytes("lots"), None);
        let times = ["30s", "1m30s", "500ms", "2h", "10"].map(|text| duration(text).unwrap());
        assert_eq!(times, ["30s", "90s", "1s", "2h", "10s"]);
        assert_eq!(duration("x"), None);
        assert_eq!(image_name("nvcr.io/nvidia/pytorch:24.07-py3").as_deref(), Some("pytorch"));
    }
}
