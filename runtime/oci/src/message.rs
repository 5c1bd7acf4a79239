//! The messages for users about a container.

/// What went wrong: the error, and what to do about it.
pub fn error(error: &jobc_sys::Error) -> String {
    let help = error.help.iter().map(|help| format!(" \x1b[1m= help\x1b[0m: {help}\n")).collect::<String>();
    format!("\x1b[1m\x1b[91merror\x1b[0m: {error}\n{help}")
}

/// What is worth knowing.
pub fn warning(text: &str) -> String {
    format!("\x1b[1m\x1b[33mwarning\x1b[0m: {text}\n")
}
