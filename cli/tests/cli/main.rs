//! The binary as a user sees it: every command, its output, its exit code, and what it leaves on disk.
#![forbid(unsafe_code)]

mod arguments;
mod build;
mod commands;
mod concurrent;
mod diff;
mod directory;
mod failures;
mod fix;
mod fleet;
mod fmt;
mod formats;
mod image_names;
mod inputs;
mod lsp;
mod pipes;
mod plan;
mod plugins;
mod provenance;
mod runtime;
mod secrets;
mod settings;
mod test;
mod why;
mod without_runtime;
