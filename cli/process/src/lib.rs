//! Runs commands of this program in processes of their own: with a timeout, a limit for their output, and until the
//! caller stops waiting for them.
//!
//! `jobc mcp` and `jobc serve` answer with what the command line prints. A process can be canceled, its memory is bounded,
//! and an internal error fails one answer.
#![forbid(unsafe_code)]

mod own_command;
mod running;

pub use own_command::{OwnCommand, READ_BELOW};
pub use running::{Finished, Running, run};
