//! Jobs on this host.
//!
//! A job is plain files that every command reads: [`directory`] defines their paths, [`record`], [`event`] and
//! [`origin`] their content. [`admission`], [`provision`], [`secrets`] and
//! [`network`] prepare a job before its first task;
//! [`lifecycle`] decides the steps and has no side effects; [`supervisor`] carries out the decisions, with containers,
//! [`ready`], [`logs`], [`metrics`] and the job file's own [`user_metrics`]. [`recover`] finds jobs whose supervisor was
//! killed. [`sweep`] names the jobs of a matrix, and [`metric_choice`] picks a number to compare them by,
//! of which [`metric_history`] has all values. [`history`] compares what jobs used with what they asked for.
#![cfg(target_os = "linux")]
#![allow(clippy::similar_names, reason = "uid and gid, list and last: the words of the subject")]

pub mod admission;
pub mod allocate;
mod caller_ids;
pub mod clean;
pub mod control;
mod devices;
pub mod directory;
pub mod discarded;
mod disk_traffic;
pub mod event;
pub mod history;
pub mod host_environment;
pub mod lifecycle;
pub mod local_place;
pub mod logs;
pub mod metric_choice;
pub mod metric_history;
pub mod metrics;
pub mod network;
pub mod newest;
pub mod node;
pub mod notice;
pub mod origin;
pub mod port_owner;
mod program;
pub mod provision;
pub mod rates;
pub mod ready;
pub mod record;
pub mod recover;
pub mod secrets;
mod shared_memory;
pub mod spent;
mod stall;
pub mod submission;
pub mod supervisor;
pub mod sweep;
pub mod unmet;
pub mod user_metrics;
