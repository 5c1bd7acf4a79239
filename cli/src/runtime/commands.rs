//! The commands that run jobs and containers on this host, one per file.

pub(crate) mod copy;
pub(crate) mod doctor;
pub(crate) mod events;
pub(crate) mod exec;
pub(crate) mod follow;
pub(crate) mod found;
pub(crate) mod gpu;
pub(crate) mod history;
pub(crate) mod image;
pub(crate) mod inspect;
mod job_end_line;
mod job_image;
mod job_list;
pub(crate) mod jobs;
pub(crate) mod kill;
pub(crate) mod lock;
pub(crate) mod logs;
pub(crate) mod metrics;
pub(crate) mod newest;
pub(crate) mod pause;
pub(crate) mod port_forward;
pub(crate) mod ps;
mod queue_list;
#[cfg(feature = "remote")]
pub(crate) mod remote;
#[cfg(not(feature = "remote"))]
#[path = "commands/without_remote.rs"]
pub(crate) mod remote;
pub(crate) mod report;
pub(crate) mod rm;
pub(crate) mod run;
mod searched;
#[cfg(feature = "serve")]
pub(crate) mod serve;
pub(crate) mod stats;
pub(crate) mod stop;
mod subject;
pub(crate) mod submit_here;
pub(crate) mod sweep;
#[cfg(feature = "remote")]
mod target_table;
#[cfg(not(feature = "remote"))]
#[path = "commands/without_targets.rs"]
mod target_table;
mod task_lines;
mod tasks_table;
pub(crate) mod top;
pub(crate) mod trace;
pub(crate) mod wait;
pub(crate) mod why;
