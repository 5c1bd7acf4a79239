//! The targets of a job without a `targets.yaml`.

use jobc_schema::BackendName;
use jobc_schema::target::Target;

/// The target without a `targets.yaml` if none is chosen: this host.
pub const DEFAULT_TARGET: &str = "local";

/// The targets without a `targets.yaml`, [`DEFAULT_TARGET`] first: one for each kind of place.
pub fn built_in_targets() -> [(&'static str, Target); 3] {
    use BackendName::{Cgroup, Dockerfile, Kubernetes, Oci, Openpai};
    let target = |backends: &[BackendName]| Target { backends: backends.to_vec(), ..Target::default() };
    [
        (DEFAULT_TARGET, target(&[Dockerfile, Oci, Cgroup])),
        ("kubernetes", target(&[Kubernetes])),
        ("openpai", target(&[Openpai])),
    ]
}
