//! Printing: to a terminal, a pipe, or a closed pipe.
//!
//! It is a crate because `jobc` prints on every platform, and `jobc-oci` has nothing else of `jobc`.
#![forbid(unsafe_code)]

use std::io;

/// Prints to standard output.
///
/// A reader that went away, as `head` does, is not an error: the program ends quietly, as Unix tools do.
pub fn print(text: &str) {
    end_on_error(write_all(&mut anstream::stdout().lock(), text));
}

/// Prints to standard error.
pub fn eprint(text: &str) {
    // Nothing can be reported when standard error itself is closed.
    let choice = anstream::AutoStream::choice(&io::stderr());
    let _ = if choice == anstream::ColorChoice::Never {
        // In one write, since several processes may share the file: anstream writes each part between two colors
        // separately.
        write_all(&mut io::stderr().lock(), &anstream::adapter::strip_str(text).to_string())
    } else {
        write_all(&mut anstream::stderr().lock(), text)
    };
}

/// The text of an error: the message, and the advice.
pub fn error(text: &str, helps: &[impl std::fmt::Display]) -> String {
    let helps: String = helps.iter().map(|help| format!(" \x1b[1m= help\x1b[0m: {help}\n")).collect();
    format!("\x1b[1m\x1b[91merror\x1b[0m: {text}\n{helps}")
}

/// Explains a panic: it is a bug in jobc, not in the user's files.
pub fn report_panic(panic: &std::panic::PanicHookInfo<'_>) {
    eprintln!("jobc: internal error: {panic}");
    eprintln!("jobc: this is a bug in jobc, not in your job; please report it with the job file");
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
