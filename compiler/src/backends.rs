//! The backends, one folder a format.

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

#[cfg(all(test, any(feature = "oci", feature = "cgroup", feature = "kubernetes")))]
pub(crate) mod fixture;
