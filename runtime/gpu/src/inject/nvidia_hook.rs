//! NVIDIA's own hook: it injects the devices named in the environment after the container's namespaces are created.

use std::path::{Path, PathBuf};

use jobc_schema::gpu::Vendor;
use oci_spec::runtime::{HookBuilder, Spec};

use super::environment::{VISIBLE_DEVICES, capabilities, value};
use super::request::{InjectionMethod, InjectionReport, InjectionRequest};
use crate::cdi::edit::{add_hook, set_variable};
use crate::host::Host;
use crate::inventory::{DeviceId, Inventory};
use jobc_sys::error::{Error, Kind, Result};

/// Where packages put the hook; the last is its name until 1.12.
const HOOK_PATHS: [&str; 4] = [
    "/usr/bin/nvidia-container-runtime-hook",
    "/usr/local/nvidia/toolkit/nvidia-container-runtime-hook",
    "/usr/local/bin/nvidia-container-runtime-hook",
    "/usr/bin/nvidia-container-toolkit",
];

/// Adds the hook, and the variables by which it gives exactly these devices.
pub(super) fn add(
    spec: &mut Spec,
    machine: &Host,
    inventory: &Inventory,
    devices: &[DeviceId],
    wants: &InjectionRequest<'_>,
) -> Result<InjectionReport> {
    let refused = |message: String| {
        Error::new(Kind::Unsupported, message).help("choose another way: `--gpu-injection auto`")
    };
    if devices.iter().any(|device| device.vendor != Vendor::Nvidia) {
        return Err(refused("NVIDIA's hook supports NVIDIA GPUs only".to_owned()));
    }
    let names: Vec<String> = devices.iter().map(|device| inventory.name(*device)).collect();
    let names = names.join(",");
    if let Some(written) = wants.visible.filter(|written| *written != names) {
        return Err(refused(format!(
            "`{VISIBLE_DEVICES}={written}` of the job would make NVIDIA's hook inject other GPUs than `{names}`"
        ))
        .help("remove the variable from the job, or choose another way: `--gpu-injection auto`"));
    }
    set_variable(spec, &format!("{VISIBLE_DEVICES}={names}"));
    if value(spec, "NVIDIA_DRIVER_CAPABILITIES").is_none() {
        let words: Vec<&str> = capabilities(wants.capabilities).iter().map(|one| one.as_str()).collect();
        set_variable(spec, &format!("NVIDIA_DRIVER_CAPABILITIES={}", words.join(",")));
    }
    if !has_hook(spec) {
        let hook = find(machine).ok_or_else(|| {
            Error::new(Kind::System, "NVIDIA's hook is not installed").help(
                "install the package nvidia-container-toolkit, or choose another way: `--gpu-injection auto`",
            )
        })?;
        let words = ["nvidia-container-runtime-hook", "prestart"].map(str::to_owned).to_vec();
        // The only stage that it works at; deprecated, and run by every runtime.
        add_hook(spec, "prestart", HookBuilder::default().path(hook).args(words).build().unwrap_or_default());
    }
    Ok(InjectionReport { method: InjectionMethod::Hook, notes: Vec::new() })
}

/// Where the hook is.
pub(super) fn find(machine: &Host) -> Option<PathBuf> {
    // The toolkit is the host's own where the driver lies elsewhere.
    let own = HOOK_PATHS.iter().map(PathBuf::from);
    let driver = HOOK_PATHS.iter().map(|place| machine.path(place));
    driver.chain(own).find(|path| path.is_file())
}

/// Whether the bundle was built with it.
fn has_hook(spec: &Spec) -> bool {
    let Some(hooks) = spec.hooks() else { return false };
    #[allow(deprecated)]
    let list = hooks.prestart();
    let named = |path: &Path| HOOK_PATHS.iter().any(|place| Path::new(place).file_name() == path.file_name());
    list.iter().flatten().any(|hook| named(hook.path()))
}
