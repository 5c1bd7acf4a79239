//! Carries plans out on a Linux machine.
//!
//! The core is a container from an OCI bundle. [`config`] reads `config.json` and refuses what it cannot keep,
//! [`prepare`] turns it into a flat list of [`operation`]s with every string and descriptor ready, and [`process`]
//! makes the container's first process, which carries the list out and becomes the user's program. After the process
//! is made nothing allocates and nothing takes a lock: it shares the memory of the one that made it until its `execve`.
//!
//! The files bear the kernel's words. What an operation does stands in the file of its subject: [`mounts`],
//! [`namespaces`], [`devices`], [`capabilities`], [`seccomp`], [`cgroup`]. Every system call the new process makes goes
//! through [`syscall::Kernel`], so that tests can record them or let one fail.
#![cfg(target_os = "linux")]

pub mod admission;
pub mod allocate;
pub mod bundle;
pub mod c_list;
pub mod capabilities;
pub mod cgroup;
pub mod config;
pub mod container;
pub mod decompress;
pub mod devices;
pub mod doctor;
pub mod error;
pub mod exec;
pub mod features;
pub mod gpu;
pub mod hooks;
pub mod id_map;
pub mod image;
pub mod job;
mod kernel_file;
pub mod labels;
pub mod lifecycle;
pub mod logs;
pub mod machine;
pub mod metrics;
pub mod mounts;
pub mod namespaces;
pub mod network;
pub mod operation;
pub mod own_program;
pub mod prepare;
pub mod privileges;
pub mod process;
pub mod provision;
pub mod ready;
pub mod rlimits;
pub mod root;
pub mod rootfs;
pub mod rootless;
pub mod scope;
pub mod seccomp;
pub mod secrets;
pub mod signals;
pub mod start;
pub mod state;
pub mod supervisor;
pub mod syscall;
pub mod systemd;
pub mod tar;
pub mod terminal;
pub mod timed;
pub mod trampoline;
pub mod user;

pub use error::{Error, Result};
