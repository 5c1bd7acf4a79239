//! Reads config.json, sees what it does not know, and refuses what it cannot keep.

pub mod mount_options;

pub use mount_options::MountOptions;
