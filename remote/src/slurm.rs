//! Slurm as a place that runs jobs, through its own commands on a host that has them: this one, or a login node.
//!
//! Each run has a directory on the shared file system, made by [`submit`]: the files that `jobc build` wrote, the
//! numbers of its Slurm jobs, and what its scripts write about themselves ([`snapshot`]). Slurm forgets jobs that have
//! ended; the directory does not. So what it says is asked first, then `squeue` for all jobs at once ([`queue`]), and
//! `scontrol` and `sacct` for what is still unknown. [`group`], [`state`], [`tasks`] and [`why`] are pure functions over
//! these answers. [`cluster`] puts them together.
//!
//! What runs on the host is bash, in the files next to this one: one call for each question.

mod access;
mod array;
mod checks;
mod cluster;
mod events;
mod exec;
mod files;
mod group;
mod logs;
mod output;
mod port_forward;
mod ports;
mod problems;
mod queue;
mod record;
mod shell;
mod snapshot;
mod state;
mod submit;
mod tasks;
mod time;
mod upload;
mod usage;
mod why;

pub use access::Access;
pub use cluster::Cluster;
