//! Runs jobs elsewhere: submits what `jobc build` wrote, and shows, waits for and ends what runs there.
//!
//! A [`Place`] runs jobs. [`kubernetes`], [`slurm`] and [`machine`] are three. This crate reads built directories
//! ([`built`]) and their plan; it never sees the compiler, and it prints nothing. The place keeps all state:
//! nothing is stored on this host.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

pub mod built;
mod forwarded;
pub mod host;
mod http;
pub mod identity;
pub mod kubernetes;
pub mod machine;
pub mod place;
pub mod slurm;
pub mod target;
mod task_copy;
mod user_side;
mod websocket;

pub use jobc_place::job_ref::Handle;
pub use place::{Place, RemotePlace};
