//! The binary as a user sees it: every command, its output, its exit code, and what it leaves on disk.
#![forbid(unsafe_code)]

mod arguments;
mod build;
mod commands;
mod concurrent;
mod directory;
#[cfg(target_os = "linux")]
mod dockerfiles;
#[cfg(target_os = "linux")]
mod doctor;
mod failures;
mod formats;
#[cfg(target_os = "linux")]
mod hooks;
#[cfg(target_os = "linux")]
mod host_root;
#[cfg(target_os = "linux")]
mod image_build;
mod image_names;
mod inputs;
#[cfg(target_os = "linux")]
mod lock;
mod lsp;
#[cfg(target_os = "linux")]
mod oci;
#[cfg(target_os = "linux")]
mod other_runtime;
mod pipes;
#[cfg(target_os = "linux")]
mod roots;
#[cfg(target_os = "linux")]
mod run_bundle;
#[cfg(target_os = "linux")]
mod run_job;
mod secrets;
#[cfg(target_os = "linux")]
mod watch;
