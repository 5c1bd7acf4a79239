//! Printing, and properties of the terminal.

use std::io::{self, IsTerminal as _};

use jobc_compiler::diagnostic::render::TextStyle;
pub(crate) use jobc_terminal::{eprint, print};

/// The style of text for people on stderr.
pub(crate) fn style() -> TextStyle {
    let terminal = io::stderr().is_terminal();
    let color = anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never;
    let utf8 = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
        .is_some_and(|value| value.to_ascii_lowercase().replace('-', "").contains("utf8"));
    let width = if terminal { columns() } else { 120 };
    TextStyle { color, unicode: terminal && utf8, width }
}

/// The terminal's width, or a default.
fn columns() -> usize {
    columns_of(io::stderr()).unwrap_or(100)
}

/// The width of the terminal of stdout; none if it is a pipe or a file.
pub(crate) fn columns_of_stdout() -> Option<usize> {
    io::stdout().is_terminal().then(|| columns_of(io::stdout()).unwrap_or(100))
}

/// The same for stderr.
#[cfg(target_os = "linux")]
pub(crate) fn columns_of_stderr() -> Option<usize> {
    io::stderr().is_terminal().then(columns)
}

fn columns_of(terminal: impl std::os::fd::AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    Some(usize::from(size.ws_col)).filter(|&n| n >= 40)
}
