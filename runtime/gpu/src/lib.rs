//! GPUs of this host, in terms that placement, injection and reports share.
//!
//! An [`Inventory`] is created for each use and never kept: cards and MIG instances come and go. The modules below
//! find it, one per source: [`machine`] defines where to look, [`take`] combines what the others find.
#![cfg(target_os = "linux")]
#![allow(clippy::similar_names, reason = "uid and gid, list and last: the words of the subject")]

mod amd;
mod askers;
mod binds;
pub mod cdi;
mod declare;
pub mod demand;
mod drm;
pub mod files;
pub mod hook;
pub mod inject;
mod intel;
mod inventory;
pub mod ld_cache;
pub mod lease;
pub mod libraries;
pub mod machine;
pub mod mps;
mod nodes;
pub mod nvidia;
pub mod nvml;
mod pci;
pub mod pins;
pub mod placement;
mod places;
pub mod requires;
pub mod seating;
pub mod share;
pub mod sharing;
mod suits;
mod take;
pub mod tasks;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod testing;
pub mod trace;

pub use inventory::{DeviceId, Driver, Gpu, Inventory, Link, Source, Way};
pub use jobc_nvml::{Mig, MigDevice, Process};
pub use machine::Machine;
