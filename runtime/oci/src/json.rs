//! Values as JSON on stdout.

use jobc_sys::error::{Error, Kind, Result};

/// Prints a value as JSON.
pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<()> {
    let text =
        serde_json::to_string_pretty(value).map_err(|error| Error::new(Kind::State, error.to_string()))?;
    jobc_terminal::print(&(text + "\n"));
    Ok(())
}

/// Prints a list as JSON in one line, as runc does: scripts read the line.
pub(crate) fn print_json_line(value: &impl serde::Serialize) -> Result<()> {
    let text = serde_json::to_string(value).map_err(|error| Error::new(Kind::State, error.to_string()))?;
    jobc_terminal::print(&(text + "\n"));
    Ok(())
}
