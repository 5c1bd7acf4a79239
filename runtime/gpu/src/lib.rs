//! GPUs of this host, in terms that placement, injection and reports share.
//!
//! An [`Inventory`] is created for each use: cards and MIG instances come and go. Of NVML's report, what cannot change
//! within seconds is kept for the next command ([`nvml::Freshness`]). The modules below find it, one per source:
//! [`host`] defines where to look, [`discover`] combines what the others find.
#![cfg(target_os = "linux")]
#![allow(clippy::similar_names, reason = "uid and gid, list and last: the words of the subject")]

mod amd;
pub mod assignment;
mod bind_mounts;
pub mod cdi;
mod declare;
pub mod demand;
pub mod device_names;
mod discover;
mod drm;
pub mod enforcement;
pub mod files;
mod held_memory;
pub mod hook;
pub mod host;
pub mod inject;
mod intel;
mod inventory;
pub mod ld_cache;
pub mod lease;
pub mod libraries;
mod matching;
pub mod mps;
mod nodes;
pub mod nvidia;
pub mod nvml;
mod nvml_programs;
mod paths;
mod pci;
pub mod placement;
pub mod requires;
pub mod sharing;
pub mod step;
pub mod tasks;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod testing;
pub mod trace;

pub use host::Host;
pub use inventory::{DeviceId, Driver, Gpu, Inventory, Link, LinkType, Source};
pub use jobc_nvml::{CardState, Mig, MigDevice, Process};
