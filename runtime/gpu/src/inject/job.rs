//! What a task's bundle and root specify about its devices.

use oci_spec::runtime::Spec;

use super::environment;
use jobc_container::bundle::Bundle;
use jobc_container::root::Root;

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

/// Says in a container without devices that there are none.
pub fn hide_all(spec: &mut Spec, visible: Option<&str>) {
    environment::hide_all(spec, visible);
}
