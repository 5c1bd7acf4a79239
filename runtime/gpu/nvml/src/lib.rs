//! What NVIDIA's own library says of its cards, for whoever cannot load it or would rather not.
//!
//! NVML is somebody else's code that talks to a kernel driver: it can take seconds to wake cards up, hang where the driver
//! does, and crash. So a process of its own asks it and prints what it says, a line of JSON; this crate has both the asking
//! and the types of that line. The process is `jobc` itself, or the program `jobc-nvml`: a `jobc` that is linked statically
//! can load no library of another C library, and this small program, linked as most are, can.

mod ask;
mod report;
mod watch;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub use report::{Card, Mig, MigDevice, Moment, Process, REFUSED, Said};

/// Loads the first of these files that is NVML, and asks all there is to ask.
///
/// # Errors
///
/// Why it says nothing, in words.
pub fn ask(files: &[impl AsRef<Path>]) -> Result<Said, String> {
    ask::ask(files)
}

/// The process that asks: prints what NVML says in a line, or why it says nothing ([`REFUSED`]).
///
/// `words` are the files to try for the library. With `--watch` before them it answers for each byte that it reads, and
/// tells what changes from moment to moment ([`Moment`]) alone.
pub fn answer(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut files: Vec<PathBuf> = words.into_iter().map(PathBuf::from).collect();
    if files.first().is_some_and(|word| word.as_os_str() == "--watch") {
        files.remove(0);
        return watch::answer(&files);
    }
    let (text, code) = match ask::ask(&files) {
        Ok(said) => (serde_json::to_string(&said).unwrap_or_default(), ExitCode::SUCCESS),
        Err(why) => (why, ExitCode::from(REFUSED)),
    };
    // Who asked may have stopped listening.
    let _ = writeln!(std::io::stdout(), "{text}");
    code
}
