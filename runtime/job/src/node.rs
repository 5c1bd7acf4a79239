//! A job's tasks on the nodes of a Slurm job: `jobc node`, which its batch script runs.
//!
//! The command itself ([`front`]) only hands on the signals of Slurm, and ends with the code of the job. The
//! [supervisor](crate::supervisor) is another process, outside of the tree that Slurm signals: with
//! `proctrack/linuxproc` each `srun` would get them, too, and kill its task. Of a task, [`agent`] runs on its node.

pub mod agent;
pub(crate) mod allocation;
pub mod events;
pub mod front;
pub(crate) mod run;

/// The hidden command: `jobc node-supervise PLAN RUN`, with the connection to [`front`] as its standard input. It starts
/// itself again with a third word and ends, so that the supervisor is not a descendant of Slurm's process.
pub const SUPERVISE: &str = "node-supervise";

/// The exit code of a task whose step was lost, as with its node.
pub(crate) const LOST: u8 = 255;
