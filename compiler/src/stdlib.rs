//! Facts built into the compiler: GPUs, CUDA, drivers, sharing systems and public images.
//!
//! They are YAML files under `stdlib/` at the root of the repository, compiled into the binary as JSON and read on first
//! use.
//! `docs/reference/gpu-tables.md` lists their sources.

pub mod arch;
pub mod cuda;
pub mod images;
pub mod mig;
pub mod models;
pub mod nvidia;
pub mod providers;
pub mod systems;

use serde::de::DeserializeOwned;

pub use jobc_schema::Version;

/// Reads a table that `build.rs` made of a built-in file; a test reads them all, so this cannot fail for a user.
fn load<T: DeserializeOwned>(json: &str) -> T {
    serde_json::from_str(json)
        .unwrap_or_else(|error| panic!("a built-in table has the shape of its type: {error}"))
}

#[cfg(test)]
mod tests;
