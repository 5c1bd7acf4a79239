//! `jobc lsp`: the language server, on standard input and output.

use jobc_lsp::Ended;

use crate::disk::DiskFiles;
use crate::outcome::Outcome;
use crate::terminal;

pub(crate) fn run() -> Outcome {
    // A mistake of ours costs the request that met it, and the server goes on: the log says what happened.
    std::panic::set_hook(Box::new(|panic| eprintln!("jobc lsp: internal error: {panic}")));
    match jobc_lsp::serve_stdio(&DiskFiles::new("/")) {
        Ok(Ended::Properly) => Outcome::Fine,
        // The protocol's own code for `exit` without `shutdown`.
        Ok(Ended::Abruptly) => Outcome::Errors,
        Err(error) => {
            terminal::eprint(&format!("jobc lsp: standard input or output failed: {error}\n"));
            Outcome::Fault
        }
    }
}
