//! A job on this machine: what it is called, where its files are, and what is known of it.
//!
//! A job has two folders. The *state* folder holds what must not outlive the machine's uptime: the lock that its
//! supervisor holds, the control socket, the built bundles, the containers' folders. The *record* folder holds what people
//! look at later: `job.json` (a [`Record`](record::Record)), `events.jsonl`, samples and logs. Both are plain files that any
//! later `jobc` reads; whether a job still runs is told by the lock alone, which the kernel drops with its holder.

pub mod control;
pub mod event;
pub mod folder;
pub mod id;
pub mod lost;
pub mod record;
pub mod submission;
pub mod time;

pub use folder::{Folder, Places};
pub use id::{JobId, TaskId};
pub use time::Time;
