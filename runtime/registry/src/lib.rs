//! Fetches images from registries and sends them there: the OCI distribution specification 1.1 over HTTP/1.1.
//!
//! One [`Client`](client::Client) serves a command. It downloads content into the runtime's store blob by blob, and
//! verifies the digest and size of each; interrupted downloads resume. No part of this crate is loaded to start a
//! container: images are fetched before the job's supervisor exists.
#![forbid(unsafe_code)]

mod agent;
mod blob;
mod challenge;
pub mod client;
pub mod credentials;
mod duplex;
mod endpoint;
#[cfg(fuzzing)]
pub mod fuzzing;
mod manifest;
mod pull;
mod push;
mod retry;
mod session;
pub mod settings;
pub mod signature;
mod tls;
mod web;

pub use agent::certificate_bundle;
pub use client::Client;
pub use credentials::Credentials;
pub use settings::Settings;
pub use web::WebClient;

/// Maximum number of concurrent blob transfers: one connection rarely uses the full bandwidth, and registries refuse
/// clients with many.
const MAX_CONCURRENT: usize = 4;

/// What every HTTP client of jobc shares: TLS, the host's certificates, the environment's proxies, waits between tries.
pub mod http {
    pub use crate::agent::{environment_proxy, host_certificates, is_excluded_from_proxy};
    pub use crate::duplex::Duplex;
    pub use crate::retry::{Backoff, parse_retry_after};
    pub use crate::tls::{ClientIdentity, TlsConnector, TlsSettings, certificates_from_pem, key_from_pem};
}
