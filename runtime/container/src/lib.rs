//! A container from an OCI bundle.
//!
//! [`config`] reads `config.json` and refuses what is not supported, [`prepare`] turns it into a flat list of
//! [`operation`]s with every string and file descriptor ready, and [`process`] creates the container's first process,
//! which executes the list and becomes the user's program. The new process neither allocates nor takes a lock: it
//! shares its parent's memory until its `execve`.
//!
//! Files are named after the kernel's terms. Each operation is implemented in the file of its subject: [`mounts`],
//! [`namespaces`], [`devices`], [`capabilities`], [`seccomp`], [`cgroup`].
#![cfg(target_os = "linux")]
#![allow(clippy::similar_names, reason = "uid and gid, list and last: the words of the subject")]

pub mod archive;
pub mod bundle;
pub mod capabilities;
pub mod cgroup;
pub mod child;
pub mod classes;
pub mod config;
pub mod container;
pub mod decompress;
pub mod devices;
pub mod exec;
pub mod features;
pub mod hooks;
pub mod id_mapped;
pub mod labels;
pub mod listener;
pub mod mounts;
pub mod namespaces;
pub mod nested;
pub mod network_devices;
pub mod oci_state;
pub mod operation;
pub mod options;
pub mod prepare;
pub mod privileges;
pub mod probe;
pub mod process;
pub mod remove;
pub mod rlimits;
pub mod root;
pub mod rootfs;
pub mod rootless;
pub mod scope;
pub mod seccomp;
pub mod secret;
pub mod secret_directory;
pub mod start;
pub mod state;
pub mod systemd;
pub mod tar;
pub mod terminal;
pub mod trampoline;
pub mod user;
