//! Printing: to a terminal, a pipe, or a pipe that somebody closed.

use std::io::{self, IsTerminal as _};

use jobc_compiler::diagnostic::render::TextStyle;

/// Prints to standard output.
///
/// A reader that went away, as `head` does, is no error of ours: the program ends quietly, as Unix tools do.
pub(crate) fn print(text: &str) {
    end_on_error(write_all(&mut anstream::stdout().lock(), text));
}

/// Prints to standard error.
pub(crate) fn eprint(text: &str) {
    // Nobody is left to tell when standard error itself is closed.
    let _ = write_all(&mut anstream::stderr().lock(), text);
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

/// How text for people looks on standard error.
pub(crate) fn style() -> TextStyle {
    let terminal = io::stderr().is_terminal();
    let colour = anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never;
    let utf8 = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
        .is_some_and(|value| value.to_ascii_lowercase().replace('-', "").contains("utf8"));
    let width = if terminal { columns() } else { 120 };
    TextStyle { colour, unicode: terminal && utf8, width }
}

/// The terminal's width, or a usual one.
fn columns() -> usize {
    columns_of(io::stderr()).unwrap_or(100)
}

/// The width of the terminal that standard output is; nothing where it is a pipe or a file.
#[cfg(target_os = "linux")]
pub(crate) fn columns_of_stdout() -> Option<usize> {
    io::stdout().is_terminal().then(|| columns_of(io::stdout()).unwrap_or(100))
}

/// The same of standard error.
#[cfg(target_os = "linux")]
pub(crate) fn columns_of_stderr() -> Option<usize> {
    io::stderr().is_terminal().then(columns)
}

fn columns_of(terminal: impl std::os::fd::AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    Some(usize::from(size.ws_col)).filter(|&n| n >= 40)
}
