//! Compares the values of config.json with what the specification and the kernel allow.
//!
//! Limits, the seccomp filter and some others are checked by the functions that convert them for the kernel, which are
//! called here.

mod findings;
mod linux;
mod mounts;
mod network_devices;
mod process;

use oci_spec::runtime::{Hook, Spec};

use super::Config;
use findings::Findings;
use jobc_sys::error::{Error, Kind};

/// Maximum number of other places that an error names.
const MAX_PLACES: usize = 5;

impl Config {
    /// All errors of a configuration that could be read: known but unsupported properties, and values out of range. An
    /// empty list means that there are none. Unknown properties are in [`Config::unknown`].
    pub fn check(&self) -> Vec<Error> {
        let mut findings = Findings::default();
        let spec = &self.spec;
        version(spec, &mut findings);
        findings.0.extend(self.unsupported_properties());
        root(spec, &mut findings);
        process::check(spec, &mut findings);
        mounts::check(spec, &mut findings);
        linux::check(spec, &mut findings);
        hooks(spec, &mut findings);
        findings.0
    }
}

impl Config {
    /// Refuses a configuration that has any error: with the first error, which names the places of the
    /// others.
    pub fn refuse(&self) -> Result<(), Error> {
        let mut errors = self.check().into_iter();
        let Some(first) = errors.next() else { return Ok(()) };
        let others: Vec<String> =
            errors.filter_map(|error| error.pointer().map(|place| format!("`{place}`"))).collect();
        if others.is_empty() {
            return Err(first);
        }
        let more = match others.len().checked_sub(MAX_PLACES) {
            None | Some(0) => String::new(),
            Some(more) => format!(" and {more} more"),
        };
        let shown = &others[..others.len().min(MAX_PLACES)];
        let also = format!("then see also {}{more}", shown.join(", "));
        Err(first.help(also))
    }
}

/// The version: 1.0 to 1.3, by semantic versioning the later ones understand the earlier.
fn version(spec: &Spec, findings: &mut Findings) {
    let version = spec.version();
    let mut parts = version.split(['.', '-', '+']);
    let (major, minor, patch) = (parts.next(), parts.next(), parts.next());
    let number = |part: Option<&str>| part.and_then(|part| part.parse::<u32>().ok());
    match (number(major), number(minor), number(patch)) {
        (Some(1), Some(0..=3), Some(_)) => {}
        (Some(_), Some(_), Some(_)) => {
            let error =
                Error::new(Kind::Unsupported, format!("specification version {version} is not supported"));
            findings.0.push(error.at("/ociVersion").help("supported versions: 1.0.0 to 1.3.x"));
        }
        _ if version.is_empty() => {
            findings.error(
                "/ociVersion",
                "the specification version is missing",
                "write `\"ociVersion\": \"1.1.0\"`",
            );
        }
        _ => findings.error(
            "/ociVersion",
            format!("`{version}` is not a version"),
            "write three numbers, such as `1.1.0`",
        ),
    }
}

fn root(spec: &Spec, findings: &mut Findings) {
    match spec.root() {
        None => findings.error("/root", "`root` is missing", "write `\"root\": {\"path\": \"rootfs\"}`"),
        Some(root) if root.path().as_os_str().is_empty() => {
            findings.error(
                "/root/path",
                "the root path is empty",
                "write `rootfs`, or the path of a directory",
            );
        }
        Some(root) => findings.check_text("/root/path", &root.path().to_string_lossy()),
    }
}

fn hooks(spec: &Spec, findings: &mut Findings) {
    let Some(hooks) = spec.hooks() else { return };
    let stages: [(&str, &Option<Vec<Hook>>); 6] = [
        ("prestart", hooks.prestart()),
        ("createRuntime", hooks.create_runtime()),
        ("createContainer", hooks.create_container()),
        ("startContainer", hooks.start_container()),
        ("poststart", hooks.poststart()),
        ("poststop", hooks.poststop()),
    ];
    for (stage, hooks) in stages {
        for (index, hook) in hooks.iter().flatten().enumerate() {
            let place = format!("/hooks/{stage}/{index}");
            if !hook.path().is_absolute() {
                let message = format!("`{}` is not an absolute path", hook.path().display());
                findings.error(
                    format!("{place}/path"),
                    message,
                    "write the absolute path of the hook's program",
                );
            }
            findings.check_text(format!("{place}/path"), &hook.path().to_string_lossy());
            for (argument, text) in hook.args().iter().flatten().enumerate() {
                findings.check_argument(format!("{place}/args/{argument}"), text, "an argument");
            }
            findings.check_environment(&format!("{place}/env"), hook.env().as_deref().unwrap_or_default());
            if hook.timeout().is_some_and(|seconds| seconds <= 0) {
                findings.error(
                    format!("{place}/timeout"),
                    "the timeout is not positive",
                    "write 1 second or more, or remove the timeout",
                );
            }
        }
    }
}

#[cfg(test)]
mod tests;
