//! Printing, and properties of the terminal.

use std::io::{self, IsTerminal as _};

use jobc_compiler::diagnostic::render::TextStyle;
pub(crate) use jobc_terminal::{eprint, print};
use terminal_size::{Width, terminal_size_of};

/// The style of text for people on stderr.
pub(crate) fn style() -> TextStyle {
    let color = anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never;
    let utf8 = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
        .is_some_and(|value| value.to_ascii_lowercase().replace('-', "").contains("utf8"));
    let columns = columns_of_stderr();
    TextStyle { color, unicode: columns.is_some() && utf8, width: columns.unwrap_or(120) }
}

/// The width of the terminal of stdout, or a default; none if it is a pipe or a file.
pub(crate) fn columns_of_stdout() -> Option<usize> {
    io::stdout().is_terminal().then(|| columns(terminal_size_of(io::stdout())))
}

/// The same for stderr.
pub(crate) fn columns_of_stderr() -> Option<usize> {
    io::stderr().is_terminal().then(|| columns(terminal_size_of(io::stderr())))
}

fn columns(size: Option<(Width, terminal_size::Height)>) -> usize {
    size.map(|(Width(columns), _)| usize::from(columns)).filter(|&n| n >= 40).unwrap_or(100)
}
