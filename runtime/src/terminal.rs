//! The container's terminal: its pseudo-terminal, and the relay to ours.

pub mod console;
