//! The formats of jobc: the job and targets files as people write them, and the plan as parts of jobc read it.
//!
//! The Rust types are the source; `*.v1.schema.json` next to this crate's `Cargo.toml` are made from them by
//! [`generate`] and compared by a test. The binary carries the committed files.
#![forbid(unsafe_code)]

pub mod budget;
pub mod code;
pub mod cron;
pub mod decimal;
pub mod digest;
pub mod distributed;
pub mod dns;
pub mod duration;
mod editor;
pub mod exchange;
pub mod failure;
mod forms;
pub mod generate;
pub mod gpu;
pub mod idle;
pub mod image;
pub mod init;
pub mod job;
pub mod matrix;
pub mod metric;
pub mod notice;
pub mod percent;
pub mod permissions;
pub mod plan;
mod plural;
pub mod pointer;
pub mod preemption;
pub mod preflight;
pub mod progress;
pub mod quantity;
pub mod queueing;
pub mod reference;
pub mod resources;
pub mod role;
pub mod scalar;
pub mod schedule;
pub mod shell;
pub mod signal;
pub mod site;
pub mod stall;
pub mod steps;
pub mod storage;
pub mod suggest;
pub mod target;
mod version;

pub use decimal::Decimal;
pub use digest::Digest;
pub use duration::Seconds;
pub use job::Job;
pub use plan::Plan;
pub use plural::plural;
pub use pointer::Pointer;
pub use quantity::{Bytes, Cpus};
pub use reference::Reference;
pub use scalar::{EnvValue, Scalar};
pub use target::{BackendName, Targets};
pub use version::Version;

/// The JSON Schema of job files.
pub const JOB_SCHEMA: &str = include_str!("../job.v1.schema.json");
/// The JSON Schema of `targets.yaml`.
pub const TARGETS_SCHEMA: &str = include_str!("../targets.v1.schema.json");
/// The JSON Schema of `plan.json`.
pub const PLAN_SCHEMA: &str = include_str!("../plan.v1.schema.json");
/// The JSON Schema of the messages between jobc and plug-ins.
pub const PLUGIN_SCHEMA: &str = include_str!("../plugin.v1.schema.json");
/// The JSON Schema of what commands about jobs print with `--format json`.
pub const OUTPUT_SCHEMA: &str = include_str!("../output.v1.schema.json");
