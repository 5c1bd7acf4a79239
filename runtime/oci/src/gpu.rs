//! The request of a bundle in `NVIDIA_VISIBLE_DEVICES`, which only NVIDIA's runtime and hook read.

use oci_spec::runtime::Spec;

const VARIABLE: &str = "NVIDIA_VISIBLE_DEVICES";

/// The warning for a bundle that requests GPUs but has neither device nodes nor hooks to provide them.
pub(crate) fn missing_devices(spec: &Spec) -> Option<String> {
    let env = spec.process().as_ref()?.env().as_ref()?;
    let value = env.iter().rev().find_map(|item| item.strip_prefix(VARIABLE)?.strip_prefix('='))?;
    let has_hooks = spec.hooks().is_some();
    let devices = spec.linux().as_ref().and_then(|linux| linux.devices().as_ref());
    let has_devices = devices
        .is_some_and(|devices| devices.iter().any(|device| device.path().starts_with("/dev/nvidiactl")));
    let asks = !matches!(value, "" | "void" | "none") && !has_hooks && !has_devices;
    asks.then(|| {
        format!(
            "`{VARIABLE}={value}` adds no GPUs: config.json has no hook or device of NVIDIA; `jobc run BUNDLE --devices 0` adds GPUs"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpu_request_without_devices_or_hooks_is_a_warning() {
        let check = |env: &str, rest: &str, expected: bool| {
            let text = format!(
                r#"{{"ociVersion": "1.0.2", "process": {{"cwd": "/", "user": {{"uid": 0, "gid": 0}}, "env": ["{env}"]}}{rest}}}"#
            );
            let spec: Spec = serde_json::from_str(&text).expect("a configuration");
            assert_eq!(missing_devices(&spec).is_some(), expected, "{env} {rest}");
        };
        check("NVIDIA_VISIBLE_DEVICES=0", "", true);
        check("NVIDIA_VISIBLE_DEVICES=all", "", true);
        check("NVIDIA_VISIBLE_DEVICES=void", "", false);
        check("NVIDIA_VISIBLE_DEVICES=none", "", false);
        check("A=b", "", false);
        check("NVIDIA_VISIBLE_DEVICES=0", r#", "hooks": {"prestart": [{"path": "/hook"}]}"#, false);
        let node = r#", "linux": {"devices": [{"path": "/dev/nvidiactl", "type": "c", "major": 195, "minor": 255}]}"#;
        check("NVIDIA_VISIBLE_DEVICES=0", node, false);
    }
}
