//! Facts built into the compiler: GPUs, CUDA, drivers, sharing systems and public images.
//!
//! They are YAML files under `stdlib/` at the root of the repository, compiled into the binary and parsed on first use.
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

use crate::diagnostic::Sink;
use crate::parse::parse;
use crate::source::{Source, Sources};

pub use jobc_schema::Version;

/// Parses a built-in file; a test parses them all, so this cannot fail for a user.
fn load<T: DeserializeOwned>(path: &str, text: &str) -> T {
    let mut sources = Sources::new();
    let id = sources.add(Source::new(path, text));
    let mut sink = Sink::new();
    let document = parse(&sources, id, &mut sink);
    let json = document.expect("a built-in file is YAML").to_json();
    serde_json::from_value(json).unwrap_or_else(|error| panic!("{path} has the shape of its type: {error}"))
}

#[cfg(test)]
mod tests;
