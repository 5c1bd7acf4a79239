//! Printing: to a terminal, a pipe, or a closed pipe.

use std::io;

#[cfg(target_os = "linux")]
use jobc_sys::error::{Error, Kind, Result};

/// Prints to standard output.
///
/// A reader that went away, as `head` does, is not an error: the program ends quietly, as Unix tools do.
pub fn print(text: &str) {
    end_on_error(write_all(&mut anstream::stdout().lock(), text));
}

/// Prints to standard error.
pub fn eprint(text: &str) {
    // Nothing can be reported when standard error itself is closed.
    let _ = write_all(&mut anstream::stderr().lock(), text);
}

/// Prints a value as JSON.
#[cfg(target_os = "linux")]
pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<()> {
    let text =
        serde_json::to_string_pretty(value).map_err(|error| Error::new(Kind::State, error.to_string()))?;
    print(&(text + "\n"));
    Ok(())
}

/// Prints a list as JSON in one line, as runc does: scripts read the line.
#[cfg(target_os = "linux")]
pub(crate) fn print_json_line(value: &impl serde::Serialize) -> Result<()> {
    let text = serde_json::to_string(value).map_err(|error| Error::new(Kind::State, error.to_string()))?;
    print(&(text + "\n"));
    Ok(())
}

fn write_all(out: &mut impl io::Write, text: &str) -> io::Result<()> {
    out.write_all(text.as_bytes())?;
    out.flush()
}

fn end_on_error(result: io::Result<()>) {
    if let Err(error) = result {
        if error.kind() == io::ErrorKind::BrokenPipe {
            std::process::exit(0);
        }
        eprint(&format!("jobc: cannot write to standard output: {error}\n"));
        std::process::exit(3);
    }
}
