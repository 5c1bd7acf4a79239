//! `jobc lsp`: the language server, on stdin and stdout.

use jobc_lsp::SessionEnd;

use crate::disk::DiskFiles;
use crate::outcome::Outcome;
use crate::terminal;

pub(crate) fn run() -> Outcome {
    // An internal error fails one request, and the server continues. The log has the error.
    std::panic::set_hook(Box::new(|panic| eprintln!("jobc lsp: internal error: {panic}")));
    match jobc_lsp::serve_stdio(&DiskFiles::new("/")) {
        Ok(SessionEnd::Properly) => Outcome::Success,
        // The protocol's own code for `exit` without `shutdown`.
        Ok(SessionEnd::Abruptly) => Outcome::Errors,
        Err(error) => {
            terminal::eprint(&format!("jobc lsp: standard input or output failed: {error}\n"));
            Outcome::SystemError
        }
    }
}
