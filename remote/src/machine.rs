//! Jobs on another machine: `jobc run` there, over the system's ssh.
//!
//! The records of `jobc` on the machine are the state of a job. A run has a directory there with what was built, the
//! job's files, and `run.json`, which says which job it is ([`runs`]). It is there as a whole or not at all, and the
//! start of the job is taken care of under a lock ([`submit`]), so a submission can be broken off anywhere and be
//! repeated.

mod answers;
mod checks;
mod copy;
mod events;
mod exec;
mod follow;
mod images;
mod logs;
mod place;
mod port_forward;
mod program;
mod record;
mod runs;
mod scripts;
mod secrets;
mod sources;
mod submit;
mod usage;

pub use place::Machine;
pub use program::Access;
