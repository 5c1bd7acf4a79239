//! Syscalls of the runtime, and code shared by all of its parts: errors, IDs, signals, files.
//!
//! Every syscall that a container's first process makes goes through [`syscall::Kernel`], so that tests can record
//! them or let one fail. `unsafe` code is in [`syscall`] and [`c_list`].
#![cfg(target_os = "linux")]
#![allow(clippy::similar_names, reason = "uid and gid, list and last: the words of the subject")]

pub mod accounts;
pub mod c_list;
pub mod confine;
pub mod error;
pub mod host;
pub mod id;
pub mod id_map;
pub mod kernel_file;
pub mod netlink;
pub mod open_inside;
pub mod own_program;
pub mod parallel;
pub mod pid_namespace;
pub mod process;
pub mod program_path;
pub mod readable;
pub mod run_with_timeout;
pub mod signals;
pub mod sockets;
pub mod sparse;
pub mod syscall;
pub mod write_atomic;
pub mod yaml;

pub use error::{Error, Result};
