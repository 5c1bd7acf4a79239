//! `jobc serve`: a web page and a REST API to write, submit and watch jobs.
//!
//! The records of jobs and the clusters are the state. The server itself has tokens ([`tokens`]) and the audit file
//! ([`audit`]), so that jobs neither need it nor notice its end. What it answers is what commands of this program print,
//! each in a process of its own ([`own`]); what is followed has one such process, whose lines all followers share
//! ([`follow`]).
//!
//! Reading order: `listen` (connections), `guard` (hosts, origins, headers), `endpoint` (who may call what), `routes` (one
//! file a resource).
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod actor;
mod address;
mod archive;
mod audit;
mod call;
mod clusters;
mod endpoint;
mod follow;
mod guard;
mod language;
mod limits;
mod listen;
mod local_jobs;
mod openapi;
mod openpai;
mod options;
mod own;
mod owners;
mod page;
mod peer;
mod problem;
mod random;
mod reply;
mod router;
mod routes;
mod server;
mod start;
mod terminal;
mod tls;
mod tokens;
mod uploads;
mod web_socket;
mod workspace;

pub use address::{Listen, ListenError};
pub use openapi::document as openapi_document;
pub use options::{Directories, Options, Proxy, Share};
pub use start::run;
pub use tokens::Access;
