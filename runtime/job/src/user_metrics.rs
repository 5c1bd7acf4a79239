//! The metrics of a job file: numbers that tasks print or write to a file, of which the record keeps the last.
//!
//! A line is matched as it comes. Files are read while a task runs and once it has ended, by a thread, since they may be
//! on a slow file system.

mod file;
mod format;
mod log;

pub use file::{COUNT_KEYS, FileValue, MAX_FILE_BYTES, read_number, read_values, select_number};
pub use format::format_number;
pub use log::{LogMetrics, last_number};

use std::path::PathBuf;

use jobc_schema::plan::{MetricSource, RolePlan};

/// A metric of a role that is read of a file.
#[derive(Clone, Debug)]
pub struct FileMetric {
    /// Its name.
    pub name: String,
    /// The volume on this host.
    pub volume: PathBuf,
    /// The path in it.
    pub path: String,
    /// The key of the number.
    pub key: String,
}

/// The metrics of a role that are read of files. `volume` finds a volume on this host.
pub fn files_of(role: &RolePlan, volume: &dyn Fn(&str) -> Option<PathBuf>) -> Vec<FileMetric> {
    let of_file = |(name, metric): (&String, &jobc_schema::plan::MetricPlan)| {
        let MetricSource::File { volume: wanted, path, key } = &metric.source else { return None };
        Some(FileMetric { name: name.clone(), volume: volume(wanted)?, path: path.clone(), key: key.clone() })
    };
    role.metrics.iter().filter_map(of_file).collect()
}
