//! Jobs on another host: `jobc run` there, over the system's ssh.
//!
//! The records of `jobc` on the host are the state of a job. A run has a directory there with the built files, the
//! job's files, and `run.json`, which identifies the job ([`runs`]). The directory is created atomically, and a lock
//! protects the start of the job ([`submit`]), so a submission can be interrupted at any point and repeated.

mod answers;
mod capacity;
mod checks;
mod code;
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
