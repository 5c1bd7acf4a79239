//! Images: a store on this host, imports into it, and root filesystems from it.
//!
//! The store is an OCI image layout (image-spec, image-layout.md), so other tools can read it. This crate has no
//! registry client: a caller with a client passes a [`Fetch`].
#![cfg(target_os = "linux")]
#![allow(clippy::similar_names, reason = "uid and gid, list and last: the words of the subject")]

pub mod build;
pub mod config;
pub mod diff;
mod fetch;
pub mod manifest;
pub mod mount;
mod ownership;
pub mod pack;
mod pack_options;
pub mod packages;
pub mod platform;
pub mod progress;
pub mod save;
pub mod sbom;
pub mod source;
pub mod store;
mod unknown_fields;
pub mod unpack;
mod worker;

pub use config::Config;
pub use fetch::Fetch;
pub use jobc_dockerfile as dockerfile;
pub use jobc_schema::digest::{self, Digest, Hasher};
pub use jobc_schema::reference::Reference;
pub use manifest::{Descriptor, Index, Manifest};
pub use platform::Platform;
pub use progress::{Progress, ProgressFn};
pub use store::{Image, Store};
