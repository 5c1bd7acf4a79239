//! The settings of a task's bundle and root about its devices.

use oci_spec::runtime::Spec;

use super::{InjectionRequest, environment, inject};
use crate::host::Host;
use crate::inventory::Inventory;
use crate::nvml::Freshness;
use jobc_container::bundle::Bundle;
use jobc_container::root::Root;
use jobc_sys::error::Result;

/// Whether a root is the host's own files.
pub fn is_host_root(root: &Root) -> bool {
    root.directories() == [std::path::Path::new("/")]
}

/// The value of `NVIDIA_VISIBLE_DEVICES` that the job's author wrote in a bundle: not the one that the bundle has from
/// its `resources.gpu` and the target's `oci.devices`.
pub fn visible_by_author(bundle: &Bundle) -> Option<String> {
    let value = environment::value(&bundle.config.spec, environment::VISIBLE_DEVICES)?;
    let by_request = ["dev.jobc.gpus", "dev.jobc.gpu.devices"]
        .into_iter()
        .any(|name| bundle.annotation(name) == Some(value));
    (value != "void" && !by_request).then(|| value.to_owned())
}

/// Says in a container without devices that there are none; with `none` as its author's `NVIDIA_VISIBLE_DEVICES`, it gets
/// the driver's files. Returns notes for the user.
///
/// # Errors
///
/// As of [`inject`].
pub fn without_devices(spec: &mut Spec, root: &Root, visible: Option<&str>) -> Result<Vec<String>> {
    if visible != Some("none") {
        environment::hide_all(spec, visible);
        return Ok(Vec::new());
    }
    // Only here is the host looked at, which takes longer than all else.
    let host = Host::here();
    let inventory = Inventory::discover_with(&host, Freshness::Facts);
    let wants = InjectionRequest { host_root: is_host_root(root), visible, ..InjectionRequest::default() };
    Ok(inject(spec, &host, &inventory, &[], &wants)?.notes)
}
