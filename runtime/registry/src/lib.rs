//! Fetches images from registries and sends them there: the OCI distribution specification 1.1 over HTTP/1.1.
//!
//! One [`Client`](client::Client) serves a command. What it fetches goes into the store of the runtime blob by blob, each checked against
//! its digest and size on its way; what is cut off goes on where it ended. No part of this crate is loaded to start a
//! container: images are fetched before the job's supervisor is there.
#![forbid(unsafe_code)]

mod agent;
mod blob;
mod challenge;
pub mod client;
pub mod credentials;
mod endpoint;
mod manifest;
mod parallel;
mod pull;
mod push;
mod retry;
mod session;
pub mod settings;

pub use client::Client;
pub use credentials::Credentials;
pub use settings::Settings;
