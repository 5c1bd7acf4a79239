//! Kubernetes as a place that runs jobs, through its HTTP API.
//!
//! [`kubeconfig`] finds the cluster and the user, [`client`] sends requests, [`watch`] follows objects. [`state`],
//! [`pods`] and [`why`] are pure functions over the cluster's answers. [`objects`] finds a job with its pods; [`events`],
//! [`queue`], [`follow`] and [`lifecycle`] are what commands do with it. [`cluster`] puts them together.

mod access;
mod answers;
mod busy;
mod capacity;
mod checks;
mod client;
mod cluster;
mod code;
mod counts;
mod discovery;
mod events;
mod exec;
mod exec_plugin;
mod follow;
mod kinds;
mod kubeconfig;
mod lifecycle;
mod lines;
mod log_position;
mod log_stream;
mod log_streams;
mod log_workers;
mod objects;
mod outage;
mod pods;
mod port_forward;
mod problems;
mod queue;
mod reasons;
mod release;
pub mod rights;
mod rule;
mod secrets;
mod spdy;
mod state;
mod status;
mod submit;
mod suspension;
mod task;
mod upgrade;
mod usage;
mod uses;
mod watch;
mod why;

pub use cluster::Cluster;
pub use kubeconfig::{Access, ClusterConfig};
pub use uses::Uses;
