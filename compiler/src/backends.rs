//! The backends, one directory a format, and the table of them.
//!
//! Adding a backend touches its own directory, one line of the table below, and one Cargo feature.

use jobc_schema::BackendName;

use crate::backend::Backend;

#[cfg(feature = "cgroup")]
pub mod cgroup;
#[cfg(feature = "dockerfile")]
pub mod dockerfile;
#[cfg(feature = "kubernetes")]
pub mod kubernetes;
#[cfg(feature = "oci")]
pub mod oci;
#[cfg(feature = "openpai")]
pub mod openpai;
#[cfg(feature = "slurm")]
pub mod slurm;

#[cfg(all(test, any(feature = "oci", feature = "cgroup", feature = "kubernetes", feature = "slurm")))]
pub(crate) mod fixture;

/// The backends that are built in, in the order they are written.
pub fn table() -> &'static [&'static dyn Backend] {
    &[
        #[cfg(feature = "dockerfile")]
        &dockerfile::DockerfileBackend,
        #[cfg(feature = "oci")]
        &oci::OciBackend,
        #[cfg(feature = "cgroup")]
        &cgroup::CgroupBackend,
        #[cfg(feature = "kubernetes")]
        &kubernetes::KubernetesBackend,
        #[cfg(feature = "openpai")]
        &openpai::OpenpaiBackend,
        #[cfg(feature = "slurm")]
        &slurm::SlurmBackend,
    ]
}

/// The built-in backend of that name; nothing where this binary was built without it.
pub fn find(name: BackendName) -> Option<&'static dyn Backend> {
    table().iter().copied().find(|backend| backend.name() == name)
}
