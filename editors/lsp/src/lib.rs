//! The language server of jobc: what is in an editor, compiled as it is typed.
//!
//! [`serve`] talks to one client over a [`Connection`]. It reads what the client has open and, through the trait
//! [`Files`](jobc_compiler::files::Files), the files beside it; it writes nothing and starts nothing. Findings are those of
//! the compiler, word for word. docs/reference/language-server.md tells what there is.
//!
//! The order of reading: `server` (messages), `session` (what is known), `analysis` (a job compiled), then a file a
//! feature: `diagnostics`, `actions`, `complete`, `hover`, `goto`, `outline`, `hints`, `format`, `requests`.
#![forbid(unsafe_code)]

mod actions;
mod amounts;
mod analysis;
mod capabilities;
mod client;
mod complete;
mod diagnostics;
mod dispatch;
mod documents;
mod format;
mod goto;
mod hints;
mod hover;
mod names;
mod outline;
mod overlay;
mod place;
mod requests;
mod schema;
mod server;
mod session;
mod text;
mod uri;

pub use lsp_server::Connection;
pub use server::{Ended, serve};

/// Talks to a client on standard input and output.
///
/// # Errors
/// Where standard input or output fails in the middle of a message.
pub fn serve_stdio(disk: &dyn jobc_compiler::files::Files) -> std::io::Result<Ended> {
    let (connection, threads) = Connection::stdio();
    let ended = serve(&connection, disk);
    // The writer ends when nobody can send to it any more.
    drop(connection);
    if ended == Ended::Properly { threads.join().map(|()| ended) } else { Ok(ended) }
}

#[cfg(test)]
mod tests;
