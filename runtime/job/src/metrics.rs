//! The resource usage of running tasks: read from their cgroups, or from their processes without one, and from the
//! driver for GPUs; their energy from counters.
//!
//! A [`Sampler`] is part of a job's supervisor. It reads the kernel's counters once a second, or less often if that
//! would cost more than a thousandth of a CPU, and appends what has changed to `samples.jsonl`, a [`Sample`] a line.
//! That file stays small: the longer a job runs, the further apart are the samples that are kept ([`SampleFile`]).

mod energy;
mod faults;
mod gpu;
mod live;
mod processes;
mod sample;
mod sample_file;
mod sampler;

pub use faults::{GpuActivity, GpuFault};
pub use live::LiveUsage;
pub use sample::Sample;
pub use sample_file::SampleFile;
pub use sampler::Sampler;

use crate::directory::Directory;

/// Reads a job's samples, in the order they were taken; invalid lines are skipped.
pub fn read(directory: &Directory) -> Vec<Sample> {
    let text = std::fs::read(directory.samples_file()).unwrap_or_default();
    text.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}
