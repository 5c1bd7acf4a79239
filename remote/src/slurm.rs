//! Jobs on Slurm, through its commands on a host that has them: this one, or a login node.
//!
//! Each run has a directory on the shared file system, made by [`submit`]: the files that `jobc build` wrote, the
//! numbers of its Slurm jobs, and the state that its scripts write ([`snapshot`]). Slurm forgets jobs that have ended;
//! the directory does not. So the directory is read first, then `squeue` for all jobs together ([`queue`]), and
//! `scontrol` and `sacct` for what is still unknown. [`group`], [`state`], [`tasks`] and [`why`] are pure functions
//! over these answers. [`cluster`] puts them together. What is done on the host is in [`login`], and what is done on a
//! node beside a task in [`node`].

mod access;
mod array;
mod capacity;
mod checks;
mod cluster;
mod events;
mod exec;
mod files;
mod group;
mod hostlist;
pub mod login;
mod logs;
mod node;
mod output;
mod port_forward;
mod ports;
mod problems;
mod queue;
mod record;
mod snapshot;
mod state;
mod submit;
mod tasks;
mod time;
mod usage;
mod why;

pub use access::Access;
pub use cluster::Cluster;
