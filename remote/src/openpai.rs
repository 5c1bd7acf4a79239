//! OpenPAI as a place that runs jobs, through the API of its rest-server.
//!
//! [`access`] says how to reach it and reads the token, [`client`] sends requests, [`api`] has the answers, and [`names`]
//! what ties a job there to a job file. [`state`] and [`why`] are pure functions over answers. [`cluster`] puts them
//! together.
//!
//! The API is that of pai 1.8 (`src/rest-server/src/routes/v2`). Of older releases, which have fewer routes, what they
//! lack is left out or refused.

mod access;
mod api;
mod attempts;
mod checks;
mod client;
mod cluster;
mod jobs;
mod logs;
mod names;
mod output;
mod problems;
mod state;
mod status;
mod submit;
mod why;

pub use access::{Access, TokenSource};
pub use cluster::Cluster;
