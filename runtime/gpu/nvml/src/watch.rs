//! Repeated NVML queries of values that change from moment to moment: utilization, and processes.
//!
//! Loading and unloading the library can wake cards up and let them sleep, so one process keeps it loaded while a
//! reader needs it. The process exits at the end of its input pipe, so it exits with its parent, however the parent
//! dies.

use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use crate::health::Watched;
use crate::query;
use crate::report::NVML_ERROR_EXIT_CODE;

/// The process that answers: a line for each byte.
pub(crate) fn serve(files: &[PathBuf]) -> ExitCode {
    let Ok(nvml) = query::load(files) else { return ExitCode::from(NVML_ERROR_EXIT_CODE) };
    let watched = Watched::begin(&nvml);
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    while let Ok(1) = input.read(&mut [0]) {
        let text = serde_json::to_string(&query::usage_sample(&nvml, &watched)).unwrap_or_default();
        if writeln!(output, "{text}").and_then(|()| output.flush()).is_err() {
            break;
        }
    }
    ExitCode::SUCCESS
}
