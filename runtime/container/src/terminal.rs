//! The container's terminal: its pseudo-terminal, and the relay to ours.
//!
//! The container's first process opens the pseudo-terminal in the container's own `/dev/pts`, keeps the side that looks
//! like a terminal ([`console`]) and sends the other one, the master, over a [`socket`]: to a caller who gave one
//! (conmon, containerd), or to us, who then [`relay`] between it and our own standard input and output, in [`raw_mode`]
//! where that is a terminal.

pub mod console;
pub mod raw_mode;
pub mod relay;
pub mod socket;

pub use raw_mode::RawMode;
pub use relay::Relay;
