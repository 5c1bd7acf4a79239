//! Reads config.json, sees what it does not know, and refuses what it cannot keep.
//!
//! [`read`] makes types of the text and notes each unknown property. [`support`] lists every property of the
//! OCI runtime specification and whether it is kept. `check` compares values with what the kernel and the specification
//! allow. Both report all findings, each at its place; a bundle with an error is not started.

mod check;
pub(crate) mod complete;
pub mod memory_policy;
pub mod mount_options;
pub(crate) mod namespace_ownership;
pub mod read;
pub mod scheduling;
pub mod support;
pub mod sysctl;
pub mod user;

pub use mount_options::MountOptions;

use oci_spec::runtime::Spec;

/// A config.json that was read: its content, and its unknown properties.
#[derive(Clone, Debug)]
pub struct Config {
    /// Its content, with the fields of the OCI runtime specification 1.3.
    pub spec: Spec,
    /// JSON Pointers of the properties that no version of the specification has, in the order of the text. The
    /// specification wants them ignored (config.md, "Extensibility"); `jobc run` refuses them, since it would not keep
    /// them.
    pub unknown: Vec<String>,
    /// Names of unknown capabilities; they are not in the content.
    pub unknown_capabilities: Vec<String>,
}

#[cfg(test)]
mod tests;
