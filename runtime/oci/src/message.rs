//! The messages for users about a container.

/// An error and its advice.
pub fn error(error: &jobc_sys::Error) -> String {
    jobc_terminal::error(&error.to_string(), &error.hints)
}

/// Information.
pub fn warning(text: &str) -> String {
    format!("\x1b[1m\x1b[33mwarning\x1b[0m: {text}\n")
}
