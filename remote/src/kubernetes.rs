//! Kubernetes as a place that runs jobs, through its HTTP API.
//!
//! [`kubeconfig`] finds the cluster and the user, [`client`] sends requests, [`watch`] follows objects. [`state`],
//! [`pods`] and [`why`] are pure functions over the cluster's answers. [`cluster`] puts them together.

mod checks;
mod client;
mod cluster;
mod exec_plugin;
mod kinds;
mod kubeconfig;
mod logs;
mod pods;
mod problems;
pub mod rights;
mod state;
mod status;
mod submit;
mod watch;
mod why;

pub use cluster::Cluster;
pub use kubeconfig::{Access, ClusterConfig};
pub use submit::docker_config;
