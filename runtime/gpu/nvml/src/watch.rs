//! Asking NVML again and again what changes from moment to moment: how busy cards are, and with whom.
//!
//! To load the library and to leave it can wake cards up and let them sleep, so one process stays loaded for as long as
//! somebody watches. It ends with the pipe that it reads from, so with its starter, however that dies.

use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use crate::ask;
use crate::report::REFUSED;

/// The process that answers: a line for each byte.
pub(crate) fn answer(files: &[PathBuf]) -> ExitCode {
    let Ok(nvml) = ask::load(files) else { return ExitCode::from(REFUSED) };
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    while let Ok(1) = input.read(&mut [0]) {
        let text = serde_json::to_string(&ask::moment(&nvml)).unwrap_or_default();
        if writeln!(output, "{text}").and_then(|()| output.flush()).is_err() {
            break;
        }
    }
    ExitCode::SUCCESS
}
