//! The commands that run jobs and containers on this host.
#![cfg(all(target_os = "linux", feature = "runtime"))]

mod dockerfiles;
mod doctor;
mod hooks;
mod host_root;
mod image_build;
mod lock;
pub(crate) mod oci;
mod other_runtime;
mod pages;
mod roots;
mod run_bundle;
mod run_job;
mod starters;
mod submit;
mod watch;
