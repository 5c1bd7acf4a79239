//! A host on which commands run: this host, or another one by the system's ssh.
//!
//! Commands are words, never shell text. On another host they pass through the user's login shell and a POSIX shell
//! ([`quote`], [`script`]); what profiles and banners print around their output is cut off by marks ([`marks`]).

mod control;
mod machine;
mod marks;
mod output;
mod problems;
mod process;
mod program;
mod quote;
mod running;
mod script;
mod send;
mod ssh;
mod store;
mod tree;

pub use machine::Host;
pub(crate) use machine::run_here;
pub use output::Output;
pub use program::Program;
pub use running::{Running, Stream, Streams};
pub use send::{FileSource, SendFile, Sent};
pub use ssh::{Ssh, SshSettings};
pub use tree::{ImageLayout, Tree, TreeEntry, TreeKind};
