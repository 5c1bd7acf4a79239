//! The report of NVIDIA's library about its cards, for callers that cannot or should not load it.
//!
//! NVML is third-party code that talks to a kernel driver: it can take seconds to wake cards up, hang if the driver
//! hangs, and crash. So a separate process queries it and prints the result as a line of JSON; this crate has both the
//! queries and the types of that line. The process is `jobc` itself or the program `jobc-nvml`: a statically linked
//! `jobc` cannot load a library that needs another C library; this small program is linked dynamically and can.

mod health;
mod query;
mod report;
mod watch;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub use report::{
    Card, CardHealth, CardState, Mig, MigDevice, NVML_ERROR_EXIT_CODE, NvmlReport, Process, UsageSample,
};

/// Loads the first of these files that is NVML, and makes all queries.
///
/// # Errors
///
/// Why the report failed.
pub fn query(files: &[impl AsRef<Path>]) -> Result<NvmlReport, String> {
    query::query(files)
}

/// The query process: prints NVML's report in a line, or why there is none ([`NVML_ERROR_EXIT_CODE`]).
///
/// `words` are the library files to try. With `--watch` before them it prints a report for each byte that it reads,
/// with only the values that change from moment to moment ([`UsageSample`]).
pub fn run_query_process(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut files: Vec<PathBuf> = words.into_iter().map(PathBuf::from).collect();
    if files.first().is_some_and(|word| word.as_os_str() == "--watch") {
        files.remove(0);
        return watch::serve(&files);
    }
    let (text, code) = match query::query(&files) {
        Ok(report) => (serde_json::to_string(&report).unwrap_or_default(), ExitCode::SUCCESS),
        Err(why) => (why, ExitCode::from(NVML_ERROR_EXIT_CODE)),
    };
    // The reader may have closed the pipe.
    let _ = writeln!(std::io::stdout(), "{text}");
    code
}
